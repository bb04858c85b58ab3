"""Turn a table into a RUN folder and back: what the command line does, callable from Python.

workflow     `fit` and `resume`: checks, then
finishing    fit, judge, write
prediction   `predict`, and `export` of its table
folder       the files, and `documents` what they hold
evaluation   the numbers of held-out rows; `references` those of simple models
page         what the report shows
stopwatch, warned   how long it took, and what was warned of
"""
