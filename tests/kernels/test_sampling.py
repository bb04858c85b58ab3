"""The researcher's face: kernels run by hand, the page that shows it, and what every one says."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.exact import assert_mean
from tools.targets import correlated, gaussian_log_density

from credence import kernels
from credence.engine.clock import CompileClock
from credence.errors import InputError

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "own_kernel.md"
TARGET = correlated(3)
ONES = jnp.ones(3)


@pytest.fixture(scope="module")
def page() -> list[dict[str, Any]]:
    """What the page's snippets know, after each of them."""
    names: dict[str, Any] = {}
    found = []
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(snippet, names)
        found.append(dict(names))
    return found


def test_the_page_draws_from_its_gaussian(page: list[dict[str, Any]]) -> None:
    """Chains are independent, and their means of squares and products have the exact mean."""
    draws, covariance = np.asarray(page[0]["draws"], float), np.asarray(page[0]["covariance"])
    assert draws.shape == (8, 4000, 2)
    assert_mean(draws.mean(axis=1), 0.0, resolution=0.1)
    products = np.einsum("cdi,cdj->cij", draws, draws) / draws.shape[1]
    assert_mean(products, covariance, resolution=0.15)
    with pytest.raises(AssertionError, match="standard errors off"):  # planted: no correlation
        assert_mean(products, np.diag(np.diag(covariance)), resolution=0.15)


def test_the_page_keeps_what_it_asks_for(page: list[dict[str, Any]]) -> None:
    assert page[1]["draws"].shape == (10, page[1]["posterior"].num_weights)
    assert {name: leaf.shape for name, leaf in page[2]["kept"].items()} == {
        "energy": (10,),
        "rate": (10,),
    }


def test_the_page_names_every_kernel() -> None:
    text = PAGE.read_text()
    assert all(f"`{name}`" in text for name in (kernels.EXACT | kernels.BIASED | kernels.OTHERS))


def walk(**settings: Any) -> tuple[Any, Any]:
    """Draws of MALA on the target."""
    kernel = kernels.mala(gaussian_log_density, step_size=0.3, inverse_mass=ONES)
    return kernels.sample(jax.random.key(0), kernel, ONES, TARGET.data, **settings)


def test_thinning_keeps_the_last_step_of_every_draw() -> None:
    """A loop by hand with the same keys keeps the same ones."""
    final, draws = walk(num_draws=3, thinning=2)
    kernel = kernels.mala(gaussian_log_density, step_size=0.3, inverse_mass=ONES)
    state, found = kernel.init(ONES, TARGET.data), []
    for key in jax.random.split(jax.random.key(0), 3):
        for key_step in jax.random.split(key, 2):
            state, _ = kernel.step(key_step, state, TARGET.data)
        found.append(state.position)
    np.testing.assert_allclose(draws, np.stack(found), rtol=1e-5)
    np.testing.assert_array_equal(final.position, draws[-1])


def test_a_state_goes_on_where_it_stopped() -> None:
    """The direction of MCLMC too, which no position tells."""
    kernel = kernels.adjusted_mclmc(gaussian_log_density, step_size=0.5, inverse_mass=ONES)
    first, second = jax.random.split(jax.random.key(1))
    state, _ = kernels.sample(first, kernel, ONES, TARGET.data, num_draws=5)
    final, draws = kernels.sample(second, kernel, state, TARGET.data, num_draws=5)
    step, _ = kernel.step(
        jax.random.split(jax.random.split(second, 5)[0], 1)[0], state, TARGET.data
    )
    np.testing.assert_allclose(draws[0], step.position, rtol=1e-5)
    assert int(final.num_steps) == 10


def test_chains_are_abreast_and_a_program_is_compiled_once() -> None:
    kernel = kernels.ula(gaussian_log_density, step_size=0.3, inverse_mass=ONES)
    keys, starts = jax.random.split(jax.random.key(2)), jnp.zeros((4, 3))
    final, draws = kernels.sample(keys[0], kernel, starts, TARGET.data, num_draws=6)
    assert draws.shape == (4, 6, 3)
    assert final.position.shape == (4, 3)
    assert len(np.unique(draws[:, 0, 0])) == 4
    with CompileClock() as clock:
        kernels.sample(keys[1], kernel, starts, TARGET.data, num_draws=6)
    assert clock.num_traces == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_draws": 0}, "num_draws must be a whole number of at least 1, got 0"),
        ({"num_draws": 2, "thinning": 0}, "thinning must be a whole number"),
    ],
)
def test_numbers_that_are_none_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        walk(**settings)


def test_a_start_of_another_shape_is_refused() -> None:
    kernel = kernels.ula(gaussian_log_density, step_size=0.3, inverse_mass=ONES)
    with pytest.raises(InputError, match="got 3 axes: ravel"):
        kernels.sample(jax.random.key(0), kernel, jnp.zeros((2, 2, 3)), TARGET.data, num_draws=1)


@pytest.mark.parametrize("name", sorted(kernels.EXACT | kernels.BIASED | kernels.OTHERS))
def test_every_builder_says_what_it_takes_and_refuses(name: str) -> None:
    """A docstring has the density's unit, every setting by name or "as in", and what is refused."""
    builder = getattr(kernels, name)
    text = inspect.getdoc(builder)
    assert text is not None
    settings = [each for each in inspect.signature(builder).parameters if each != "log_density"]
    borrowed = re.search(
        r"(?:Arguments|Args and errors|Args)[^.]*?\b(?:as|of) (?:in )?`(\w+)`", text
    )
    if borrowed:
        text += inspect.getdoc(getattr(kernels, borrowed[1])) or ""
    assert not [each for each in settings if not re.search(rf"\b{each}\b", text)]
    assert "nats" in text
    assert name in ("value", "value_and_gradient", "hessian_columns") or "finite" in text


def test_names_are_imported_when_first_used() -> None:
    program = (
        "import sys, credence, credence.kernels as kernels\n"
        "assert 'jax' not in sys.modules\n"
        "assert set(kernels.__all__) == set(kernels._HOME)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'gibs'"):
        kernels.gibs  # noqa: B018


def test_a_builder_is_no_kernel() -> None:
    unchecked = inspect.unwrap(kernels.sample)
    with pytest.raises(InputError, match="call its builder first"):
        unchecked(jax.random.key(0), kernels.mala, np.zeros(2), num_draws=1)
