"""Holds kernels that do not move: their steps evaluate a density, a gradient or a Hessian."""
