"""Holds Markov kernels that leave a density exactly invariant, and unadjusted MCLMC beside its own."""
