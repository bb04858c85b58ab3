"""Holds what every method returns: a weighted ensemble of networks, and what is said of it.

ensemble      the members, their weights, their cost, and where they come from
predictive    mean, spread, quantiles and probabilities at new points
diagnostics   convergence, calibration, errors, cost: pure functions of NumPy arrays
"""
