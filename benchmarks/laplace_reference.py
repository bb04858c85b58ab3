"""The Laplace approximation against laplace-torch (Daxberger et al., 2021) at the same weights.

    pip install torch laplace-torch
    python benchmarks/laplace_reference.py

A tanh network 3-8-1 is trained on 100 rows (noise .5, unit prior); its weights go to PyTorch, and
both libraries compute posterior precisions of all three structures and the variance of the
linearised predictions at 50 new inputs. Kronecker factors of laplace-torch leave out the
correlations of biases with the other weights of a layer, which ours hold: there they are set to
zero for the comparison, except in the log evidence.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import torch
from laplace import Laplace as Reference
from torch.utils.data import DataLoader, TensorDataset

from credence.density.posterior import Posterior
from credence.methods.laplace.curvature import prior_stds, spectrum
from credence.methods.laplace.method import Laplace
from credence.models import MLP, Gaussian, Normal

NOISE_STD = 0.5
SIZES = (3, 8, 1)


def problem() -> tuple[Posterior, np.ndarray]:
    """100 rows, and 50 new inputs that reach further."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, SIZES[0]))
    y = np.sin(x.sum(axis=1)) + NOISE_STD * rng.normal(size=100)
    posterior = Posterior(
        MLP(SIZES[-1], hidden=SIZES[1:-1]), Gaussian("unit"), Normal(NOISE_STD), (x, y)
    )
    return posterior, 2 * rng.normal(size=(50, SIZES[0]))


def to_torch(layers: tuple) -> torch.nn.Sequential:
    """The same network in PyTorch, double precision."""
    parts: list[torch.nn.Module] = []
    for layer in layers:
        linear = torch.nn.Linear(*layer.kernel.shape).double()
        linear.weight.data = torch.tensor(np.asarray(layer.kernel, float).T.copy())
        linear.bias.data = torch.tensor(np.asarray(layer.bias, float))
        parts += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*parts[:-1])


def torch_order() -> np.ndarray:
    """The index in our position of each of PyTorch's parameters."""
    order, start = [], 0
    for fan_in, fan_out in pairwise(SIZES):
        kernel = np.arange(fan_in * fan_out).reshape(fan_in, fan_out)
        order += [start + kernel.T.ravel(), start + fan_in * fan_out + np.arange(fan_out)]
        start += fan_out * (fan_in + 1)
    return np.concatenate(order)


def is_comparable(structure: str) -> np.ndarray:
    """Entries of the precision that both say something about."""
    sizes = [n for a, b in pairwise(SIZES) for n in (a * b, b)]
    array = np.repeat(np.arange(len(sizes)), sizes)
    if structure == "kronecker":
        return array[:, None] == array
    return np.ones((len(array), len(array)), bool)


def jacobian(mode: jax.Array, posterior: Posterior, x: np.ndarray) -> np.ndarray:
    """Jacobian of the outputs in the weights (point, weight), in PyTorch's order."""

    def outputs(weights: jax.Array) -> jax.Array:
        network = posterior.unravel(weights).network
        return posterior.model.network.apply(network, jnp.asarray(x, mode.dtype))[:, 0]

    return np.asarray(jax.jacrev(outputs)(mode), float)[:, torch_order()]


def our_precision(mode: jax.Array, posterior: Posterior, structure: str) -> np.ndarray:
    """Posterior precision (weight, weight), in PyTorch's order."""
    found, stds = spectrum(mode, posterior, structure, "all"), prior_stds(posterior, "all")
    axes = found.from_eigen(np.eye(len(stds)))
    precision = (axes.T * (found.values + 1)) @ axes / np.outer(stds, stds)
    return precision[np.ix_(torch_order(), torch_order())]


def theirs(
    network: torch.nn.Sequential, posterior: Posterior, structure: str, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The same by laplace-torch, and its log evidence."""
    rows = TensorDataset(*(torch.tensor(np.asarray(part, float)) for part in posterior.data[:2]))
    reference = Reference(
        network,
        "regression",
        subset_of_weights="all",
        hessian_structure={"full": "full", "kronecker": "kron", "diagonal": "diag"}[structure],
        sigma_noise=NOISE_STD,
        prior_precision=1.0,
    )
    reference.fit(DataLoader(rows, batch_size=100))
    precision = reference.posterior_precision
    if structure == "kronecker":
        precision = precision.to_matrix()
    precision = precision.detach().numpy()
    _, variance = reference(torch.tensor(x), pred_type="glm")
    evidence = float(reference.log_marginal_likelihood())
    precision = np.diag(precision) if precision.ndim == 1 else precision
    return precision, variance.detach().numpy().ravel(), evidence


def main() -> None:
    posterior, x = problem()
    print(f"{'structure':10} precision  variance  log evidence: ours, theirs")
    for structure in ("full", "kronecker", "diagonal"):
        ensemble = Laplace(structure=structure).run(0, posterior)
        layers = jax.tree.map(lambda leaf: leaf[0, 0], ensemble.params.network.mode)
        mode = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(layers)])
        precision = np.where(
            is_comparable(structure), our_precision(mode, posterior, structure), 0.0
        )
        slopes = jacobian(mode, posterior, x)
        variance = np.sum(slopes * np.linalg.solve(precision, slopes.T).T, axis=1)
        reference, reference_variance, evidence = theirs(to_torch(layers), posterior, structure, x)
        print(
            f"{structure:10} {np.abs(precision - reference).max() / reference.max():9.1e} "
            f"{np.abs(variance / reference_variance - 1).max():9.1e}  "
            f"{ensemble.scalars['log_evidence'][0, 0]:.4f}, {evidence:.4f}"
        )


if __name__ == "__main__":
    main()
