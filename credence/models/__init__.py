"""What is modelled: networks, priors over their weights, likelihoods of the data."""

from credence.models.likelihoods.base import Likelihood
from credence.models.likelihoods.labels import Bernoulli, Categorical
from credence.models.likelihoods.noisy_argmax import NoisyArgmax
from credence.models.likelihoods.numbers import (
    HeteroscedasticNormal,
    HeteroscedasticStudentT,
    LearntScale,
    LocationScale,
    Normal,
    StudentT,
)
from credence.models.networks.encodings import Logarithmic, PiecewiseLinear
from credence.models.networks.mlp import ACTIVATIONS, MLP, Layer, Network
from credence.models.networks.residual import ResNet
from credence.models.networks.wrappers import LeadingInputs, PerAction
from credence.models.priors import Gaussian, HierarchicalGamma, Prior, TraceClass
from credence.models.relevance import Relevance

LIKELIHOODS = {
    "normal": Normal,
    "student_t": StudentT,
    "heteroscedastic": HeteroscedasticNormal,
    "heteroscedastic_t": HeteroscedasticStudentT,
}
"""Noise of a regression, by name."""

PRIORS = {
    "fan_in": Gaussian(scaling="fan_in"),
    "unit": Gaussian(scaling="unit"),
    "trace_class": TraceClass(),
    "hierarchical": HierarchicalGamma(),
    "relevance": Relevance(),
}
"""Priors over the weights, by name."""

__all__ = [
    "ACTIVATIONS",
    "LIKELIHOODS",
    "MLP",
    "PRIORS",
    "Bernoulli",
    "Categorical",
    "Gaussian",
    "HeteroscedasticNormal",
    "HeteroscedasticStudentT",
    "HierarchicalGamma",
    "Layer",
    "LeadingInputs",
    "LearntScale",
    "Likelihood",
    "LocationScale",
    "Logarithmic",
    "Network",
    "NoisyArgmax",
    "Normal",
    "PerAction",
    "PiecewiseLinear",
    "Prior",
    "Relevance",
    "ResNet",
    "StudentT",
    "TraceClass",
]
