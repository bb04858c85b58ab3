"""Holds what every method returns: a weighted ensemble of networks, and what is said of it.

ensemble      the members, their weights, their cost, and where they come from
provenance    method, settings, seed and versions that made an ensemble
saved         an ensemble as files, and back
arviz         an ensemble as ArviZ has it
predictions   mean, spread and probabilities at new points, whatever an ensemble is made of
predictive    the same of networks that share a likelihood
quantiles     where a distribution function reaches a level
predictor     what an ensemble and a stack share: predictions in batches
mixture       the same of several ensembles with different likelihoods
beta_transformed, tempered   the same made narrower, or surer
stack         several ensembles, weighted by what they say of unseen rows (`weighing`)
candidate     what might be in a stack, with its scores
saved_stack   a stack as files, and back
averages      what is left of members that are not kept
findings      what methods learn beside predictions
inputs        what predictions make of their inputs
scores        all numbers of held-out rows in one pass
diagnostics   convergence, calibration, errors, cost: pure functions of NumPy arrays
"""
