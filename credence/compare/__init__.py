"""Comparisons of methods on equal terms: experiments as data, and one runner.

specs       what an experiment is: problems, methods, sizes; plain data, to JSON and back
sources     where the data of a problem come from
published   the experiments that packages add, by name
plan        methods on any table as an experiment: `credence compare`
problem     the arrays of a problem, standardised and split
readers     what a source of data holds, read and split
encodings   inputs as networks take them
cell        one method on one problem, in a process of its own
scoring     errors, calibration, convergence of an ensemble on held-out rows
earlier     what a folder holds already: the same comparison goes on, another is refused
runner      all cells of an experiment, resumable, side by side through joblib
seeds       repetitions of a cell as means with standard errors
results     rows with speed-ups; JSON
conclusions verdicts
show        a page with charts, and tables for a terminal
"""

from credence.compare.plan import compare
from credence.compare.published import EXPERIMENTS, find
from credence.compare.runner import run
from credence.compare.specs import Experiment, MethodSpec, Problem

__all__ = ["EXPERIMENTS", "Experiment", "MethodSpec", "Problem", "compare", "find", "run"]
