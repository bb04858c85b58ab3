"""Nonlinear MCMC, particles that jump to partners on an auxiliary density.

auxiliary, auxiliary_choice     where partners live
cloud_jumps                     Boltzmann-Gibbs and accept-reject jumps
kernel                          one step of all particles
partner_kernels                 how partners move on minibatches
tempered_ladder                 partners on a hotter rung
jump_tuning, partner_warnings   what is tuned, and what a user is told
setup                           where partners start, and what tunes both kernels
method                          `Interacting`, potentials of all rows
nonlinear_sgld                  `NonlinearSGLD`, potentials of minibatches
"""
