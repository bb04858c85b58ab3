"""Chains that move by a small stand-in for the likelihood, corrected by the true one.

emulators/           stand-ins: networks, Gaussian processes, coresets, Taylor polynomials
calibration          the samplers whose draws teach an emulator; `public_code` has the published
fitting              what fits of stand-ins share
delayed_acceptance   the emulator's chain proposes, the true density decides
correction           what the true likelihood has to say of such a chain otherwise
true_likelihood      the target, evaluated where the chains are
chains               the emulator's chains and what tunes them
ces                  `CES`: calibrate, emulate, sample
random_network, surrogate_hmc, rns_hmc   `RNSHMC`: gradients of a random network
worth                whether an emulator can pay, before it is tried and once it is measured
explained_gradients  how much of the gradients a stand-in explains
emulation, section   how good the emulator was, and its part of a report's page
"""
