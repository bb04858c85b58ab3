"""Holds what every method returns: a weighted ensemble of networks, and what is said of it.

ensemble      the members, their weights, their cost, and where they come from
provenance    method, settings, seed and versions that made an ensemble
saved         an ensemble as files, and back
arviz         an ensemble as ArviZ has it
predictive    mean, spread, quantiles and probabilities at new points
diagnostics   convergence, calibration, errors, cost: pure functions of NumPy arrays
"""
