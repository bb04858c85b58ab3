"""Reversible jump over the width and the depth of a network.

target            the joint law of widths, depth and weights
active_neurons    which neurons are in use, and where their weights are
largest_network   the network that has room for all of them
moves/            birth and death of neurons and layers, split and merge
mixed_jumps       jumps of many kinds, one after the other
kernel            a sweep of jumps, then a step of the weights
ladder            the same at several temperatures
size_priors       priors over widths and depth
tuning, active_metric, move_mixture, settling   what is tuned
starts, checks    sizes and weights at which chains start; what cannot be run
scalars           what is told of every draw
method            `Transdimensional`
architecture/     p(widths, depth | data) with its Monte Carlo error, in words and on a page
"""

from credence.methods.transdimensional.architecture.posterior import width_posterior
from credence.methods.transdimensional.architecture.selection import given
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior

__all__ = ["DepthPrior", "WidthPrior", "given", "width_posterior"]
