"""Plain birth and death of a neuron: its weights are drawn from the prior."""

from jaxtyping import PRNGKeyArray

from credence.density.data import Data
from credence.methods.transdimensional.moves.base import Move, Proposal, counts
from credence.methods.transdimensional.target import Point, VariableWidth, total


def birth_death(target: VariableWidth, layer: int) -> Move:
    """A neuron's incoming and outgoing weights u are born from their prior at the larger width.

    The proposal cancels the neuron's own prior; of the others' prior only a change with the width
    is left:

        r = L(w, u) / L(w)  p(w | k + 1) / p(w | k)

    Args:
        target: joint law of widths and weights.
        layer: which hidden layer.
    """

    def birth(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        lower, upper = point.widths, point.widths.at[layer].add(1)
        params = target.with_neurons(key, point.params, lower, upper)
        log_likelihood = target.log_likelihood(params, data)
        log_ratio = log_likelihood - point.log_likelihood
        log_ratio += total(target.log_prior_of_kept(point.params, lower, upper))
        return Proposal(params, log_likelihood, log_ratio, *counts(evaluations=1))

    def death(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        lower, upper = point.widths.at[layer].add(-1), point.widths
        params = target.without_neurons(point.params, lower)
        log_likelihood = target.log_likelihood(params, data)
        log_ratio = log_likelihood - point.log_likelihood
        log_ratio -= total(target.log_prior_of_kept(params, lower, upper))
        return Proposal(params, log_likelihood, log_ratio, *counts(evaluations=1))

    return Move(birth, death, layer)
