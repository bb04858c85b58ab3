"""Holds kernels that climb: optimisers, training with dropout, variational ascent."""
