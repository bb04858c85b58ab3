"""Comparisons of methods on equal terms: the published experiments as data, and one runner.

specs       what an experiment is: problems, methods, sizes; plain data, to JSON and back
catalogue   the published experiments, with their published numbers
problem     the arrays of a problem, standardised and split
cell        one method on one problem, in a process of its own
scoring     errors, calibration, convergence of an ensemble on held-out rows
runner      all cells of an experiment, resumable, side by side through joblib
two_levels  from a model of some of the inputs to one of all: rows of a table, no more
seeds       repetitions of a cell as means with standard errors
results     rows with speed-ups; verdicts; JSON
page        one self-contained HTML page
show        tables for a terminal
"""

from credence.compare.plan import compare
from credence.compare.runner import run
from credence.compare.specs import Experiment, MethodSpec, Problem
from credence_papers.catalogue import EXPERIMENTS, find

__all__ = ["EXPERIMENTS", "Experiment", "MethodSpec", "Problem", "compare", "find", "run"]
