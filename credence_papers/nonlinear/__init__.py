"""Nonlinear Markov chain Monte Carlo: particles that jump to partners.

Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022).

density_study    densities (section 4.1, figure 1), its samplers in `densities`, its exact laws in
                 `plane_densities`
images           cifar10 (table 1)
tables           nonlinear_networks: the same samplers on tables and digits

    credence experiment run densities --size laptop --out densities
"""
