"""Approximates the posterior by a Gaussian around a trained network.

modes       the search for a mode
curvature   Gauss-Newton and Fisher matrices: full, diagonal, Kronecker-factored
method      `Laplace`
"""
