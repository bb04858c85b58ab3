"""The samplers that `diabetes.py` compares: methods of Credence, NumPyro's, BlackJAX's.

Each takes the prior's name, the number of draws and a seed, and gives predictions (chain, draw,
point) and a dictionary with its seconds, from the data to the draws.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

NUM_CHAINS = 4
HIDDEN = 50
THINNINGS = (5, 10, 20)
"""Steps of unadjusted MCLMC for each draw that is kept, as many as are tried."""
NUM_CHEES_CHAINS = 32
"""Chains of ChEES, which learns from all of them at once."""


def diabetes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standardised inputs (442, 10) and target (442,), and 50 of the inputs to predict at."""
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True)
    x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    rows = np.random.default_rng(0).choice(len(x), 50, replace=False)
    return x.astype(np.float32), y.astype(np.float32), x[rows].astype(np.float32)


def weight_stds(prior: str) -> tuple[float, float]:
    """Prior standard deviations of the weights into the hidden layer and out of it."""
    return (10**-0.5, HIDDEN**-0.5) if prior == "fan_in" else (1.0, 1.0)


def credence(method: str, prior: str, num_draws: int, seed: int) -> tuple[np.ndarray, dict]:
    """A method of this library, with its defaults."""
    from credence import Posterior, methods
    from credence.models import MLP, Gaussian, Normal

    x, y, x_new = diabetes()
    start = time.perf_counter()
    posterior = Posterior(MLP(1, (HIDDEN,)), Gaussian(scaling=prior), Normal(), (x, y))
    chosen, _ = methods.resolve(method, posterior, num_draws=num_draws, num_chains=NUM_CHAINS)
    ensemble = chosen.run(seed, posterior)
    seconds = time.perf_counter() - start
    functions = np.asarray(ensemble.functions(x_new))[..., 0]
    return functions, {"seconds": seconds, "phases": ensemble.cost.seconds}


def numpyro(prior: str, num_draws: int, seed: int, chains: str) -> tuple[np.ndarray, dict]:
    """NumPyro's NUTS, default warm-up length (Stan's 1000).

    Args:
        chains: "vectorized", all in one program on one device, or "parallel", a device for each.
    """
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    x, y, x_new = diabetes()
    std_in, std_out = weight_stds(prior)

    def model(x: Any, y: Any) -> None:
        draw = {
            "kernel": numpyro.sample("kernel", dist.Normal(0, std_in).expand([10, HIDDEN])),
            "bias": numpyro.sample("bias", dist.Normal().expand([HIDDEN])),
            "kernel_out": numpyro.sample("kernel_out", dist.Normal(0, std_out).expand([HIDDEN])),
            "bias_out": numpyro.sample("bias_out", dist.Normal()),
        }
        noise_std = numpyro.sample("noise_std", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(network(draw, x), noise_std), obs=y)

    start = time.perf_counter()
    sampler = MCMC(
        NUTS(model),
        num_warmup=1000,
        num_samples=num_draws,
        num_chains=NUM_CHAINS,
        chain_method=chains,
        progress_bar=False,
    )
    sampler.run(jax.random.key(seed), jnp.asarray(x), jnp.asarray(y))
    draws = jax.block_until_ready(sampler.get_samples(group_by_chain=True))
    seconds = time.perf_counter() - start
    return predictions(draws, x_new), {"seconds": seconds}


def network(draw: Any, x: Any) -> Any:
    """The network as NumPyro and BlackJAX get it."""
    import jax.numpy as jnp

    hidden = jnp.tanh(x @ draw["kernel"] + draw["bias"])
    return hidden @ draw["kernel_out"] + draw["bias_out"]


def predictions(draws: Any, x_new: np.ndarray) -> np.ndarray:
    """Predictions of all draws, (chain, draw, point)."""
    import jax
    import jax.numpy as jnp

    at = jnp.asarray(x_new)
    found = jax.lax.map(jax.vmap(lambda draw: network(draw, at)), draws, batch_size=1)
    return np.asarray(found)


def blackjax_problem(prior: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The log posterior, and a draw of the prior to start from, as BlackJAX gets them."""
    import jax
    import jax.numpy as jnp

    x, y, _ = (jnp.asarray(array) for array in diabetes())
    std_in, std_out = weight_stds(prior)

    def log_density(draw: Any) -> Any:
        log_std = draw["log_noise_std"]
        residual = (y - network(draw, x)) * jnp.exp(-log_std)
        penalty = (
            jnp.sum(draw["kernel"] ** 2) / std_in**2
            + jnp.sum(draw["bias"] ** 2)
            + jnp.sum(draw["kernel_out"] ** 2) / std_out**2
            + draw["bias_out"] ** 2
            + jnp.exp(2 * log_std)
        )
        return -0.5 * (jnp.sum(residual**2) + penalty) - len(y) * log_std + log_std

    def start_point(key: Any) -> Any:
        keys = jax.random.split(key, 4)
        return {
            "kernel": std_in * jax.random.normal(keys[0], (10, HIDDEN)),
            "bias": jax.random.normal(keys[1], (HIDDEN,)),
            "kernel_out": std_out * jax.random.normal(keys[2], (HIDDEN,)),
            "bias_out": jax.random.normal(keys[3], ()),
            "log_noise_std": jnp.zeros(()),
        }

    return log_density, start_point


def timed(sampler: Callable[[Any], Any], seed: int) -> tuple[np.ndarray, dict]:
    """Predictions of what a sampler draws, given a random key, and its seconds."""
    import jax

    start = time.perf_counter()
    draws = jax.block_until_ready(sampler(jax.random.key(seed)))
    seconds = time.perf_counter() - start
    return predictions(jax.device_get(draws), diabetes()[2]), {"seconds": seconds}


def side_by_side(
    chain: Callable[[Any], Any], num_chains: int, is_parallel: bool
) -> Callable[[Any], Any]:
    """The draws of many chains, given a random key.

    Args:
        chain: the draws of one, given a random key.
        is_parallel: a device for each chain, so that none waits for another; else all under vmap on
            one device.
    """
    import jax
    from jax.sharding import Mesh, PartitionSpec

    chains = jax.vmap(chain)
    if is_parallel:
        each = PartitionSpec("chain")
        chains = jax.shard_map(
            lambda keys: jax.tree.map(lambda draws: draws[None], chain(keys[0])),
            mesh=Mesh(np.array(jax.devices()), ("chain",)),
            in_specs=each,
            out_specs=each,
            check_vma=False,
        )
    run = jax.jit(chains)
    return lambda key: run(jax.random.split(key, num_chains))


def blackjax(
    prior: str,
    num_draws: int,
    seed: int,
    num_warmup: int = 1000,
    num_chains: int = NUM_CHAINS,
    is_parallel: bool = False,
) -> tuple[np.ndarray, dict]:
    """BlackJAX's NUTS, its window adaptation."""
    import blackjax
    import jax

    log_density, start_point = blackjax_problem(prior)

    def chain(key: Any) -> Any:
        key_start, key_warmup, key_sample = jax.random.split(key, 3)
        warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
        adapted, _ = warmup.run(key_warmup, start_point(key_start), num_warmup)
        step = blackjax.nuts(log_density, **adapted.parameters).step

        def draw(state: Any, key: Any) -> Any:
            state, _ = step(key, state)
            return state, state.position

        return jax.lax.scan(draw, adapted.state, jax.random.split(key_sample, num_draws))[1]

    return timed(side_by_side(chain, num_chains, is_parallel), seed)


def mclmc(
    prior: str, num_draws: int, seed: int, thinning: int, is_parallel: bool = False
) -> tuple[np.ndarray, dict]:
    """BlackJAX's unadjusted MCLMC, tuned by its authors' rule.

    It has a bias, which the columns `offset` and `std ratio` show.

    Args:
        thinning: steps for each draw that is kept; the tuning has as many steps as all draws.
    """
    import blackjax
    import jax

    log_density, start_point = blackjax_problem(prior)
    kernel = blackjax.mcmc.mclmc.build_kernel()

    def chain(key: Any) -> Any:
        key_start, key_init, key_tune, key_sample = jax.random.split(key, 4)
        state = blackjax.mcmc.mclmc.init(start_point(key_start), log_density, key_init)
        state, tuned, _ = blackjax.mclmc_find_L_and_step_size(
            kernel, thinning * num_draws, state, key_tune, logdensity_fn=log_density
        )
        step = blackjax.mclmc(
            log_density,
            L=tuned.L,
            step_size=tuned.step_size,
            inverse_mass_matrix=tuned.inverse_mass_matrix,
        ).step

        def draw(state: Any, key: Any) -> Any:
            state, _ = jax.lax.scan(
                lambda state, key: (step(key, state)[0], None),
                state,
                jax.random.split(key, thinning),
            )
            return state, state.position

        return jax.lax.scan(draw, state, jax.random.split(key_sample, num_draws))[1]

    return timed(side_by_side(chain, NUM_CHAINS, is_parallel), seed)


def chees(prior: str, num_draws: int, seed: int) -> tuple[np.ndarray, dict]:
    """BlackJAX's ChEES-HMC: 32 chains tune together and then draw as many as the others in all.

    Its weights are one vector, as its adaptation asks.
    """
    import blackjax
    import jax
    import jax.numpy as jnp
    import optax
    from jax.flatten_util import ravel_pytree

    density, start_point = blackjax_problem(prior)
    _, named = ravel_pytree(start_point(jax.random.key(0)))

    def log_density(draw: Any) -> Any:
        return density(named(draw))

    @jax.jit
    def chains(key: Any) -> Any:
        key_start, key_warmup, key_sample = jax.random.split(key, 3)
        start_points = jax.vmap(lambda key: ravel_pytree(start_point(key))[0])
        starts = start_points(jax.random.split(key_start, NUM_CHEES_CHAINS))
        warmup = blackjax.chees_adaptation(log_density, NUM_CHEES_CHAINS)
        (states, parameters), _ = warmup.run(key_warmup, starts, 0.01, optax.adam(0.02), 1000)
        step = jax.vmap(blackjax.dhmc(log_density, **parameters).step)

        def draw(states: Any, key: Any) -> Any:
            states, _ = step(jax.random.split(key, NUM_CHEES_CHAINS), states)
            return states, states.position

        num_each = NUM_CHAINS * num_draws // NUM_CHEES_CHAINS
        _, draws = jax.lax.scan(draw, states, jax.random.split(key_sample, num_each))
        return jax.vmap(jax.vmap(named))(jnp.swapaxes(draws, 0, 1))

    return timed(chains, seed)


OTHERS: dict[str, Callable[..., tuple[np.ndarray, dict]]] = {
    "numpyro-parallel": partial(numpyro, chains="parallel"),
    "blackjax-parallel": partial(blackjax, is_parallel=True),
    "blackjax-chees": chees,
    **{
        f"blackjax-mclmc-{steps}-parallel": partial(mclmc, thinning=steps, is_parallel=True)
        for steps in THINNINGS
    },
}
"""Contenders that are not methods of this library, as they are fastest; a number is that of steps
for a draw."""
SLOWER: dict[str, Callable[..., tuple[np.ndarray, dict]]] = {
    "numpyro": partial(numpyro, chains="vectorized"),
    "blackjax": blackjax,
    **{f"blackjax-mclmc-{steps}": partial(mclmc, thinning=steps) for steps in THINNINGS},
}
"""The same with all chains in one program on one device; they run if they are asked for."""
