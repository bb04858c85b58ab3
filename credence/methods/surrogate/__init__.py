"""Chains that move by a small stand-in for the likelihood, corrected by the true one.

emulators/           stand-ins: networks, Gaussian processes, coresets, Taylor polynomials
delayed_acceptance   the emulator's chain proposes, the true density decides
true_likelihood      the target, evaluated where the chains are
chains               the emulator's chains and what tunes them
ces                  `CES`: calibrate, emulate, sample
random_network, surrogate_hmc, rns_hmc   `RNSHMC`: gradients of a random network
emulation, section   how good the emulator was, and its part of a report's page
"""
