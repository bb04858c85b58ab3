"""Holds Markov kernels that leave a density invariant, and unadjusted MCLMC beside its own."""
