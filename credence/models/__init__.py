"""What is modelled: networks, priors over their weights, likelihoods of the data."""

from credence.models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticNormal,
    Likelihood,
    Normal,
    StudentT,
)
from credence.models.networks import ACTIVATIONS, MLP, Layer, Network
from credence.models.priors import Gaussian, HierarchicalGamma, Prior, TraceClass

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "Bernoulli",
    "Categorical",
    "Gaussian",
    "HeteroscedasticNormal",
    "HierarchicalGamma",
    "Layer",
    "Likelihood",
    "Network",
    "Normal",
    "Prior",
    "StudentT",
    "TraceClass",
]
