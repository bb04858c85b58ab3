"""Reversible jump over the width and the depth of a network.

target           the joint law of widths, depth and weights
active_neurons   which neurons are in use, and where their weights are
moves/           birth and death of neurons and layers, split and merge
kernel           a sweep of jumps, then a step of the weights
size_priors      priors over widths and depth
tuning, active_metric, move_mixture   what is tuned
starts           sizes and weights at which chains start
method           `Transdimensional`
architecture     p(widths, depth | data) with its Monte Carlo error
section          the part of a report's page
"""

from credence.methods.transdimensional.architecture.posterior import width_posterior
from credence.methods.transdimensional.architecture.selection import given
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior

__all__ = ["DepthPrior", "WidthPrior", "given", "width_posterior"]
