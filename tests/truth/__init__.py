"""The truth table: every kernel against exact targets, with planted errors that it must catch.

`make truth` runs it whole and writes docs/results/truth.md; `tests/truth/test_truth.py` asserts
it. It lives among the tests because it shares their targets and laws (`tools.targets`,
`tools.laws`).
"""
