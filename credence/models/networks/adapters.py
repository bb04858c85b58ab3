"""Flax and Equinox models as networks: `init`, `apply` and `fan_in`, see `networks`.

    FlaxLinen(nn.Sequential([nn.Dense(50), nn.tanh, nn.Dense(1)]))
    FlaxNNX(lambda rngs: MyModule(rngs=rngs))
    Equinox(lambda key: eqx.nn.MLP(8, 1, 50, 2, key=key))

Parameters are nested dicts of arrays. NNX and Equinox take the function that makes a model, not a
model, because every chain starts from fresh weights. Adapters are equal if what they wrap is: pass
the same object again and compiled programs are found again.

Outputs must be a function of parameters and inputs. So random layers (dropout) run in inference
mode, and layers with a state of their own (batch norm) are refused.

`fan_in` counts the inputs that a neuron sums: all axes of a kernel but that of its outputs, 1 for
an embedding. Biases and the scales of normalisation layers have 0: for a prior they are biases.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from math import prod
from typing import Any

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import InputError
from credence.models.networks.convolutions import by_products

Inputs = Float[Array, "point *feature"]
Outputs = Float[Array, "point output"]

_INFERENCE = {"deterministic": True, "train": False, "training": False}
"""Flax's usual arguments of `__call__`, and what they are for a function of inputs alone."""


@dataclass(frozen=True)
class FlaxLinen:
    """A `flax.linen` module; params is its "params" collection.

    Arguments of its `__call__` named train, training or deterministic are set for inference.

    Args:
        module: unbound, called with x (point, ...) -> (point, output).
    Raises:
        InputError: where Flax is missing, or the module is no linen module, draws at random or has
            a state.
    """

    module: Any = field(hash=False)  # fields may be lists, which have no hash: == decides

    def __post_init__(self) -> None:
        linen = _optional("flax.linen", extra="flax")
        if not isinstance(self.module, linen.Module):
            raise InputError(
                f"FlaxLinen needs a flax.linen module, got {self.module!r}: "
                "for flax.nnx use FlaxNNX(lambda rngs: ...)."
            )

    def init(self, key: PRNGKeyArray, x: Inputs) -> Any:
        """Weights from the module's own initialisers."""
        variables = self.module.init(key, x[:1], **self._arguments())
        _refuse_state(set(variables) - {"params"})
        return _cast(variables["params"], x)

    @by_products
    def apply(self, params: Any, x: Inputs) -> Outputs:
        """Outputs at the rows of x."""
        errors = _optional("flax.errors", extra="flax")
        try:
            return self.module.apply({"params": params}, x, **self._arguments())
        except errors.InvalidRngError as error:
            raise InputError(
                "The linen module draws at random when applied, so its outputs are no function of "
                "weights and inputs: build it with deterministic=True, or leave dropout out."
            ) from error

    def fan_in(self, params: Any) -> Any:
        """Inputs per neuron of every array."""
        return _flax_fan_in(params)

    def _arguments(self) -> dict[str, bool]:
        names = inspect.signature(type(self.module).__call__).parameters
        return {name: value for name, value in _INFERENCE.items() if name in names}


@dataclass(frozen=True)
class FlaxNNX:
    """A `flax.nnx` module; params are its `nnx.Param`s.

    Args:
        create: rngs -> module, which is called with x (point, ...) -> (point, output).
    Raises:
        InputError: where Flax is missing, create is no such function or the module has a state.
    """

    create: Callable[[Any], Any]

    def __post_init__(self) -> None:
        nnx = _optional("flax.nnx", extra="flax")
        if isinstance(self.create, nnx.Module) or not callable(self.create):
            raise InputError(
                f"FlaxNNX needs the function that makes the module, got {type(self.create)}: "
                "write FlaxNNX(lambda rngs: MyModule(rngs=rngs))."
            )

    def init(self, key: PRNGKeyArray, x: Inputs) -> Any:
        """Weights from the module's own initialisers."""
        nnx = _optional("flax.nnx", extra="flax")
        module = self.create(nnx.Rngs(key))
        return _cast(nnx.to_pure_dict(nnx.state(module, nnx.Param)), x)

    @by_products
    def apply(self, params: Any, x: Inputs) -> Outputs:
        """Outputs at the rows of x."""
        nnx = _optional("flax.nnx", extra="flax")
        graph, weights, rest = _nnx_parts(self.create)
        nnx.replace_by_pure_dict(weights, params)
        return nnx.merge(graph, weights, rest)(x)

    def fan_in(self, params: Any) -> Any:
        """Inputs per neuron of every array."""
        return _flax_fan_in(params)


@lru_cache(maxsize=64)
def _nnx_parts(create: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """What apply needs of a module, made once: its graph, the places of its parameters, its rest.

    The weights are shapes only; what is left, random streams that inference mode never draws from,
    are arrays.
    """
    nnx = _optional("flax.nnx", extra="flax")
    with jax.ensure_compile_time_eval():
        module = create(nnx.Rngs(0))
    module.eval()
    graph, weights, streams, state = nnx.split(module, nnx.Param, nnx.RngState, ...)
    _refuse_state({".".join(map(str, path)) for path, _ in nnx.to_flat_state(state)})
    return graph, weights, streams


@dataclass(frozen=True)
class Equinox:
    """An Equinox model; params are its floating-point arrays, nested as its fields are.

    Args:
        create: key -> model, which is called with one example x (...) -> (output,), as is
            Equinox's custom.
    Raises:
        InputError: where Equinox is missing, create is no such function or the model has a state.
    """

    create: Callable[[Any], Any]

    def __post_init__(self) -> None:
        equinox = _optional("equinox", extra="equinox")
        if isinstance(self.create, equinox.Module) or not callable(self.create):
            raise InputError(
                f"Equinox needs the function that makes the model, got {type(self.create)}: "
                "write Equinox(lambda key: MyModel(key=key))."
            )

    def init(self, key: PRNGKeyArray, x: Inputs) -> Any:
        """Weights from the model's own initialisers."""
        equinox = _optional("equinox", extra="equinox")
        params: dict[str, Any] = {}
        for path, leaf in jax.tree_util.tree_leaves_with_path(self.create(key)):
            if equinox.is_inexact_array(leaf):
                *parents, name = _names(path)
                level = params
                for parent in parents:
                    level = level.setdefault(parent, {})
                level[name] = leaf
        return _cast(params, x)

    @by_products
    def apply(self, params: Any, x: Inputs) -> Outputs:
        """Outputs at the rows of x."""
        model = jax.tree_util.tree_map_with_path(
            lambda path, leaf: (
                _at(params, path) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf
            ),
            _equinox_model(self.create),
        )
        return jax.vmap(model)(x)

    def fan_in(self, params: Any) -> Any:
        """Inputs per neuron of every array."""
        equinox = _optional("equinox", extra="equinox")
        norms = (equinox.nn.LayerNorm, equinox.nn.RMSNorm, equinox.nn.GroupNorm)
        parts = jax.tree_util.tree_leaves_with_path(
            _equinox_model(self.create),
            is_leaf=lambda part: isinstance(part, (equinox.nn.Embedding, *norms)),
        )
        owners = {_names(path): part for path, part in parts}

        def inputs(path: tuple[Any, ...], leaf: Any) -> int:
            *parents, name = _names(path)
            owner = owners.get(tuple(parents))
            if isinstance(owner, equinox.nn.Embedding):
                return 1
            if isinstance(owner, norms) or name.startswith("bias") or leaf.ndim < 2:
                return 0
            return prod(leaf.shape[1:])

        return jax.tree_util.tree_map_with_path(inputs, params)


@lru_cache(maxsize=64)
def _equinox_model(create: Callable[[Any], Any]) -> Any:
    """The model in inference mode, made once, with shapes in the places of its parameters."""
    equinox = _optional("equinox", extra="equinox")
    with jax.ensure_compile_time_eval():
        model = equinox.nn.inference_mode(create(jax.random.key(0)))
    is_index = lambda part: isinstance(part, equinox.nn.StateIndex)  # noqa: E731
    parts = jax.tree_util.tree_leaves_with_path(model, is_leaf=is_index)
    _refuse_state({".".join(_names(path)) for path, part in parts if is_index(part)})
    return jax.tree.map(
        lambda leaf: (
            jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if equinox.is_inexact_array(leaf) else leaf
        ),
        model,
    )


def _optional(module: str, *, extra: str) -> Any:
    """Import a library that not every user has."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"This network needs {module.split('.')[0]}, which is not installed: "
            f"pip install credence[{extra}]."
        ) from error


def _refuse_state(names: set[str]) -> None:
    if names:
        raise InputError(
            f"The network keeps a state besides its parameters ({', '.join(sorted(names))}), so "
            "it is no function of weights and inputs: in place of batch norm use group norm or "
            "filter response norm."
        )


def _flax_fan_in(params: Any) -> Any:
    """Flax keeps the outputs of a kernel in its last axis; attention splits them in two (head)."""

    def inputs(path: tuple[Any, ...], leaf: Any) -> int:
        *parents, name = _names(path)
        if name == "embedding":
            return 1
        if name in ("bias", "scale") or leaf.ndim < 2:
            return 0
        to_heads = leaf.ndim == 3 and parents[-1:] in (["query"], ["key"], ["value"])
        return leaf.shape[0] if to_heads else prod(leaf.shape[:-1])

    return jax.tree_util.tree_map_with_path(inputs, params)


def _names(path: tuple[Any, ...]) -> tuple[str, ...]:
    """Keys and fields on the way to a leaf."""
    return tuple(jax.tree_util.keystr((part,), simple=True) for part in path)


def _at(tree: Mapping[str, Any], path: tuple[Any, ...]) -> Any:
    for name in _names(path):
        tree = tree[name]
    return tree


def _cast(params: Any, x: Inputs) -> Any:
    """Parameters in the precision of the data, as Credence's own networks have them."""
    return jax.tree.map(lambda leaf: leaf.astype(x.dtype), params)
