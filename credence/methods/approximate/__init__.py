"""Turns a posterior into networks without a chain: what is cheap, and not exact.

deep_ensemble   networks trained from different starts, and MAP, which is one of them
mc_dropout      one network, with connections left out at random
swag            a Gaussian through the path of stochastic gradient descent
variational     a Gaussian fitted by its evidence lower bound
"""
