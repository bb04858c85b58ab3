"""Turn a table into a RUN folder and back: what the command line does, callable from Python.

`fit`, `resume` and `predict` are in `workflow`; `folder` knows the files, `evaluation` the numbers,
`page` the report.
"""
