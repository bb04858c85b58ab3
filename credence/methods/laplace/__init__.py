"""Approximates the posterior by a Gaussian around a trained network.

modes         the search for a mode
curvature     Gauss-Newton and Fisher matrices: full, diagonal, Kronecker-factored
second_order  the posterior around a point, in closed form
method        `Laplace`
"""
