"""Holds Langevin and Hamiltonian dynamics without a Metropolis test, for minibatches."""
