"""The driver: whatever stops a run, resuming it gives bit for bit the draws of a run never stopped.

The kernel here is a random walk that compiles in no time; its adapter's memory, its minibatches
and its thinning pass through the same driver as those of every method.
"""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tools.stops import AfterBlocks, Stop

from credence.density.data import Data
from credence.engine.blocks import chain_devices
from credence.engine.clock import CompileClock
from credence.engine.driver import FEWEST_DRAWS, Driver
from credence.engine.minibatches import epochs, permutation
from credence.engine.phases import Adapter, PhaseResult, fixed
from credence.engine.plan import Plan
from credence.engine.progress import Line, Monitor, NoLine, NoProgress
from credence.errors import Interrupted, StorageError
from credence.kernels.base import Kernel, Recipe

NUM_CHAINS, NUM_WEIGHTS, NUM_POINTS = 4, 3, 10


class WalkState(NamedTuple):
    position: Any


class WalkInfo(NamedTuple):
    is_finite: Any
    num_gradients: Any
    distance: Any


def walk(log_density: Any, *, scale: Any) -> Kernel:
    """A random walk drawn to the mean of its batch."""

    def step(key: Any, state: WalkState, data: Data) -> tuple[WalkState, WalkInfo]:
        centre = jnp.sum(data.weight * data.x[:, 0]) / jnp.sum(data.weight)
        noise = scale * jax.random.normal(key, state.position.shape)
        new = 0.9 * state.position + 0.1 * centre + noise
        distance = jnp.sqrt(jnp.sum(noise**2))
        return WalkState(new), WalkInfo(jnp.isfinite(new).all(), jnp.ones((), int), distance)

    return Kernel(lambda position, data: WalkState(position), step)


def no_density(position: Any, data: Data) -> Any:
    return jnp.zeros(())


RECIPE = Recipe(walk, no_density)
DATA = Data(
    jnp.arange(float(NUM_POINTS))[:, None], jnp.zeros((NUM_POINTS, 1)), jnp.ones(NUM_POINTS)
)
STARTS = jnp.zeros((NUM_CHAINS, NUM_WEIGHTS))


def adaptive() -> Adapter:
    """The scale follows the spread of the last block: any memory lost changes every draw."""
    return Adapter(
        {"scale": np.ones(()), "round": np.zeros(())},
        settings=lambda memory: {"scale": np.float32(memory["scale"])},
        update=lambda memory, block: {
            "scale": 0.5 * memory["scale"] + 0.2 * np.asarray(block.draws).std(),
            "round": memory["round"] + 1,
        },
    )


def run(folder: Path | None = None, progress: NoProgress | None = None, **driver: Any) -> Any:
    """A warm-up of 6 blocks without draws, then 60 draws in 6 blocks; the results by name."""
    key_warmup, key_sample = jax.random.split(jax.random.key(7))
    with Driver(folder, progress or NoProgress(), **driver) as opened:
        plan = Plan(
            RECIPE,
            "warmup",
            adaptive(),
            num_steps=60,
            block_steps=10,
            keep_draws=False,
            budget_share=0.5,
        )
        warmup = opened.phase("warmup", key_warmup, plan, STARTS, DATA)
        sample(opened, key_sample, warmup.positions, scale=np.float32(warmup.memory["scale"]))
    return opened.results


def sample(
    driver: Driver, key: Any = None, positions: Any = STARTS, scale: Any = 0.1, **settings: Any
) -> PhaseResult:
    """60 draws of minibatch steps in 6 blocks, or what settings say."""
    defaults: dict[str, Any] = {
        "num_steps": 60,
        "block_steps": 10,
        "batch_size": 4,
        "may_stop_early": True,
    }
    plan = Plan(RECIPE, "sample", fixed(scale=np.float32(scale)), **(defaults | settings))
    return driver.phase("sample", jax.random.key(3) if key is None else key, plan, positions, DATA)


def assert_same(results: dict[str, PhaseResult], expected: dict[str, PhaseResult]) -> None:
    """Bit for bit: draws, info, end positions and the adapter's memory of every phase."""
    assert list(results) == list(expected)
    for name, result in results.items():
        np.testing.assert_array_equal(result.draws, expected[name].draws)
        np.testing.assert_array_equal(result.positions, expected[name].positions)
        for tree in ("info", "memory"):
            got, wanted = getattr(result, tree), getattr(expected[name], tree)
            jax.tree.map(np.testing.assert_array_equal, got, wanted)


@pytest.fixture(scope="module")
def uninterrupted() -> dict[str, PhaseResult]:
    return run()


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_same_key_gives_the_same_draws(uninterrupted):
    assert_same(run(), uninterrupted)


def test_a_folder_does_not_change_the_draws(uninterrupted, tmp_path):
    assert_same(run(tmp_path), uninterrupted)
    assert_same(run(tmp_path), uninterrupted)  # all read, nothing computed


@pytest.mark.parametrize("num_blocks", [1, 4, 6, 7, 9, 12])
def test_a_crashed_run_resumes_bit_for_bit(uninterrupted, tmp_path, num_blocks):
    with pytest.raises(Stop):
        run(tmp_path, AfterBlocks(num_blocks))
    assert_same(run(tmp_path), uninterrupted)


@pytest.mark.parametrize("num_files", [1, 2, 3, 14, 15])
def test_a_crash_between_any_two_files_resumes_bit_for_bit(
    uninterrupted, tmp_path, monkeypatch, num_files
):
    """Files alternate: block, state, block, state."""
    fail_savez_after(num_files, Stop(), monkeypatch)
    with pytest.raises(Stop):
        run(tmp_path)
    monkeypatch.undo()
    assert_same(run(tmp_path), uninterrupted)


def test_a_full_disk_is_a_sentence_and_loses_nothing(uninterrupted, tmp_path, monkeypatch):
    fail_savez_after(8, OSError(errno.ENOSPC, "No space left on device"), monkeypatch)
    with pytest.raises(StorageError, match="No space left on device"):
        run(tmp_path)
    monkeypatch.undo()
    files = [path.name for path in (tmp_path / "00-warmup").iterdir()]
    assert sorted(files) == [*(f"block-{index:05d}.npz" for index in range(4)), "state.npz"]
    assert_same(run(tmp_path), uninterrupted)


def fail_savez_after(num_files: int, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """np.savez writes half of file number num_files + 1, then fails."""
    savez, left = np.savez, [num_files]

    def failing(file: Any, **arrays: Any) -> None:
        savez(file, **arrays)
        left[0] -= 1
        if left[0] < 0:
            file.truncate(file.tell() // 2)
            raise error

    monkeypatch.setattr(np, "savez", failing)


def test_what_a_kill_leaves_behind_is_ignored(uninterrupted, tmp_path):
    """Half a temporary file, and half a block that no state knows of."""
    with pytest.raises(Stop):
        run(tmp_path, AfterBlocks(9))
    (tmp_path / "01-sample" / ".block-00003.npz.123.part").write_bytes(b"PK half")
    (tmp_path / "01-sample" / "block-00003.npz").write_bytes(b"PK half")
    assert_same(run(tmp_path), uninterrupted)


@pytest.mark.parametrize("name", ["block-00001.npz", "state.npz"])
def test_a_broken_file_is_refused(tmp_path, name):
    run(tmp_path)
    path = tmp_path / "01-sample" / name
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(StorageError, match=r"cannot be read .*: restore it, or fit again"):
        run(tmp_path)


def test_another_run_in_the_folder_is_refused(tmp_path):
    run(tmp_path, identity={"method": "walk", "num_draws": 60})
    with pytest.raises(StorageError, match="num_draws was 60, now it is 70"):
        run(tmp_path, identity={"method": "walk", "num_draws": 70})
    with jax.enable_x64(True), pytest.raises(StorageError, match="dtype was float32"):
        run(tmp_path, identity={"method": "walk", "num_draws": 60})


def test_other_shapes_in_the_folder_are_refused(tmp_path):
    with Driver(tmp_path) as driver:
        sample(driver)
    with Driver(tmp_path) as driver, pytest.raises(StorageError, match="other settings"):
        sample(driver, positions=jnp.zeros((2, NUM_WEIGHTS)))


def test_ctrl_c_while_sampling_returns_what_is_drawn(uninterrupted, tmp_path):
    progress = AfterBlocks(8, press_ctrl_c)
    results = run(tmp_path, progress)
    draws = uninterrupted["sample"].draws
    np.testing.assert_array_equal(results["sample"].draws, draws[:, :20])
    assert results["sample"].num_steps == 20
    assert "Ctrl-C again stops at once" in progress.said[0]
    assert_same(run(tmp_path), uninterrupted)


def test_ctrl_c_in_the_warmup_says_that_there_is_nothing_yet(uninterrupted, tmp_path):
    with pytest.raises(Interrupted, match=r"phase 'warmup'.*resume to go on"):
        run(tmp_path, AfterBlocks(2, press_ctrl_c))
    assert_same(run(tmp_path), uninterrupted)


def test_ctrl_c_between_phases_does_not_start_the_next(tmp_path):
    with pytest.raises(Interrupted, match="phase 'sample'"):
        run(tmp_path, AfterBlocks(6, press_ctrl_c))
    assert not (tmp_path / "01-sample").exists()


def test_ctrl_c_twice_stops_at_once(uninterrupted, tmp_path):
    def press_twice() -> None:
        press_ctrl_c()
        press_ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, AfterBlocks(8, press_twice))
    assert_same(run(tmp_path), uninterrupted)


def test_ctrl_c_belongs_to_python_again_afterwards():
    before = signal.getsignal(signal.SIGINT)
    with Driver():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_a_run_out_of_time_ends_early_with_the_fewest_draws_of_every_phase(tmp_path):
    results = run(tmp_path, max_seconds=1e-6)
    assert results["warmup"].num_steps == FEWEST_DRAWS
    assert results["sample"].draws.shape == (NUM_CHAINS, FEWEST_DRAWS, NUM_WEIGHTS)
    assert all(leaf.shape == (NUM_CHAINS, 4) for leaf in results["sample"].info.values())
    assert_same(run(tmp_path), results)  # it stays ended


def slow_walk(log_density: Any, *, scale: Any) -> Kernel:
    """`walk`, at a hundredth of a second a step."""
    kernel = walk(log_density, scale=scale)

    def step(key: Any, state: WalkState, data: Data) -> tuple[WalkState, WalkInfo]:
        jax.debug.callback(lambda _: time.sleep(0.01), state.position[0], ordered=False)
        return kernel.step(key, state, data)

    return Kernel(kernel.init, step)


@pytest.mark.parametrize("batch_size", [None, 4])
def test_a_block_that_would_take_too_long_is_cut(tmp_path, batch_size):
    """A block of 1000 draws, of 4 chains at a hundredth of a second, in a budget of two seconds."""

    def found(folder: Path | None, **driver: Any) -> PhaseResult:
        with Driver(folder, **driver) as opened:
            plan = Plan(
                Recipe(slow_walk, no_density, fixed_cost=False),
                "sample",
                fixed(scale=np.float32(0.1)),
                num_steps=2000,
                block_steps=1000,
                batch_size=batch_size,
            )
            return opened.phase("sample", jax.random.key(3), plan, STARTS, DATA)

    found(None, max_seconds=0.01)  # compiles
    start = time.perf_counter()
    result = found(tmp_path, max_seconds=2.0)
    assert time.perf_counter() - start < 10.0  # a whole block takes 40
    num_draws = result.draws.shape[1]
    assert FEWEST_DRAWS < num_draws < 200
    assert np.all(result.draws[:, -1] != 0)
    np.testing.assert_array_equal(result.positions, result.draws[:, -1])
    again = found(tmp_path, max_seconds=2.0)
    np.testing.assert_array_equal(again.draws, result.draws)
    np.testing.assert_array_equal(again.positions, result.positions)


def test_a_phase_is_found_again_wherever_it_comes(tmp_path):
    """A part before it may be left out when the run goes on, where there is more time."""

    def walked(driver: Driver, name: str) -> PhaseResult:
        plan = Plan(RECIPE, "sample", fixed(scale=np.float32(0.1)), num_steps=20, block_steps=10)
        return driver.phase(name, jax.random.key(3), plan, STARTS, DATA)

    with Driver(tmp_path) as driver:
        walked(driver, "small")
        walked(driver, "main [1]")
    with Driver(tmp_path) as driver:
        walked(driver, "main [1]")
        with pytest.raises(ValueError, match=r"There was a phase 'main \[1\]' already"):
            walked(driver, "main [1]")
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_dir()) == [
        "00-small",
        "01-main [1]",
    ]


def test_a_run_with_time_to_spare_is_not_cut(uninterrupted):
    assert_same(run(max_seconds=1e6), uninterrupted)


def test_an_adapter_may_end_a_phase():
    ends = Adapter(
        np.zeros(()),
        settings=lambda memory: {"scale": np.float32(1.0)},
        update=lambda memory, block: memory + 1,
        finished=lambda memory: bool(memory >= 2),
    )
    with Driver() as driver:
        plan = Plan(RECIPE, "warmup", ends, num_steps=60, block_steps=10)
        result = driver.phase("warmup", jax.random.key(0), plan, STARTS, DATA)
    assert result.num_steps == 20


@pytest.mark.parametrize(
    ("num_draws", "block_steps", "num_blocks"), [(25, 10, 3), (9, 2, 5), (3, 100, 1), (7, 1, 7)]
)
def test_equal_blocks_cover_the_draws_and_the_surplus_is_dropped(
    num_draws, block_steps, num_blocks
):
    progress = AfterBlocks(10**6, None)
    with Driver(progress=progress) as driver:
        result = sample(driver, num_steps=num_draws, block_steps=block_steps)
    assert result.draws.shape == (NUM_CHAINS, num_draws, NUM_WEIGHTS)
    assert all(values.shape == (NUM_CHAINS, num_draws) for values in result.info.values())
    assert 10**6 - progress.left == num_blocks


def test_thinning_keeps_every_third_draw_and_sums_counts():
    with Driver() as every, Driver() as thinned:
        draws = sample(every, block_steps=30)
        thin = sample(thinned, block_steps=30, thinning=3)
    np.testing.assert_array_equal(thin.draws, draws.draws[:, 2::3])
    assert np.all(thin.info["num_gradients"] == 3)
    means = draws.info["distance"].reshape(NUM_CHAINS, 20, 3).mean(axis=-1)
    np.testing.assert_allclose(thin.info["distance"], means, rtol=1e-6)
    assert thin.num_steps == 60


def test_draws_that_nobody_needs_are_not_kept(tmp_path):
    with Driver(tmp_path) as driver:
        result = sample(driver, keep_draws=False)
    assert result.draws.shape == (NUM_CHAINS, 0, NUM_WEIGHTS)
    assert result.info["distance"].shape == (NUM_CHAINS, 60)
    with Driver() as driver:
        np.testing.assert_array_equal(result.positions, sample(driver).positions)


def test_chains_and_blocks_have_their_own_randomness(uninterrupted):
    """No draw of one chain or block is repeated in another."""
    draws = uninterrupted["sample"].draws.reshape(-1, NUM_WEIGHTS)
    assert len(np.unique(draws, axis=0)) == len(draws)


def test_each_phase_knows_how_many_rows_its_steps_saw(uninterrupted):
    assert uninterrupted["warmup"].num_rows == NUM_POINTS
    assert uninterrupted["sample"].num_rows == 4


@partial(jax.jit, static_argnames=("batch_size", "num_epochs"))
def batches(
    batch_size: int, key: Any, data: Data = DATA, num_epochs: int = 1
) -> dict[str, jax.Array]:
    """x, y and weight, each (epoch, batch, row) or with more axes behind."""
    num_batches = -(-NUM_POINTS // batch_size)
    found, shuffled = epochs(key, data, batch_size, num_epochs * num_batches)
    assert found == num_batches
    epoch = lambda number: jax.vmap(shuffled(number))(jnp.arange(num_batches))  # noqa: E731
    return jax.lax.map(epoch, jnp.arange(num_epochs))._asdict()


@pytest.mark.parametrize("batch_size", [1, 3, 4, 5, 9])
def test_an_epoch_has_every_row_once(batch_size):
    found = batches(batch_size, jax.random.key(0), num_epochs=2)
    for x, weight in zip(found["x"][..., 0], found["weight"], strict=True):
        np.testing.assert_array_equal(np.sort(x[weight > 0]), np.arange(NUM_POINTS))


def test_all_orders_are_equally_likely():
    keys = jax.random.split(jax.random.key(2), 24_000)
    found = np.asarray(jax.vmap(lambda key: permutation(key, 4))(keys))
    orders, counts = np.unique(found, axis=0, return_counts=True)
    assert len(orders) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("size", [1, 2, 257, 70_000])
def test_an_order_has_every_row_once_and_none_prefers_its_place(size: int):
    order = np.asarray(permutation(jax.random.key(3), size))
    np.testing.assert_array_equal(np.sort(order), np.arange(size))
    if size > 100:
        correlation = np.corrcoef(order, np.arange(size))[0, 1]
        assert abs(correlation) * size**0.5 < 4.5


def test_epochs_are_shuffled_anew():
    first, second = batches(5, jax.random.key(0), num_epochs=2)["x"]
    assert not np.array_equal(first, second)


def test_weights_of_a_batch_add_up_to_all_rows():
    weight = batches(4, jax.random.key(0))["weight"]
    np.testing.assert_allclose(weight.sum(axis=-1), NUM_POINTS)


def test_batches_estimate_sums_without_bias():
    """The weighted sum of y over a batch, for the last and smallest batch of every epoch too."""
    weighted = DATA._replace(y=DATA.x**2, weight=1 + DATA.x[:, 0])
    exact = jnp.sum(weighted.weight * weighted.y[:, 0])
    keys = jax.random.split(jax.random.key(1), 2000)
    found = jax.vmap(lambda key: batches(4, key, weighted))(keys)
    estimates = np.asarray(jnp.sum(found["weight"] * found["y"][..., 0], axis=-1))[:, 0]

    def worst_z(estimates: np.ndarray) -> np.ndarray:
        standard_error = estimates.std(axis=0, ddof=1) / len(keys) ** 0.5
        return np.abs((estimates.mean(axis=0) - exact) / standard_error).max()

    assert worst_z(estimates) < 4.5
    assert worst_z(estimates * 4 / NUM_POINTS) > 8  # planted: a batch not scaled to the data


@pytest.mark.parametrize("batch_size", [None, NUM_POINTS, 100])
def test_a_batch_of_everything_is_the_data_themselves(batch_size):
    num_batches, shuffled = epochs(jax.random.key(0), DATA, batch_size, 7)
    assert num_batches == 7
    assert shuffled(0)(3) is DATA


def test_another_run_of_the_same_shape_compiles_nothing():
    def once(offset: float) -> None:
        with Driver() as driver:
            data = DATA._replace(x=jnp.asarray(np.asarray(DATA.x) + np.float32(offset)))
            plan = Plan(
                RECIPE, "sample", fixed(scale=np.float32(0.1)), num_steps=20, block_steps=10
            )
            driver.phase("sample", jax.random.key(3), plan, STARTS, data)

    once(0.0)
    with CompileClock() as clock:
        once(1.0)
    assert clock.num_traces == 0


def test_the_clock_counts_what_is_inside_a_compilation_once():
    start = time.perf_counter()
    with CompileClock() as clock:
        jax.jit(lambda x: jnp.sum(jax.jit(jnp.linalg.inv)(jnp.eye(3) + x)))(1.0)
        elapsed = time.perf_counter() - start
        assert 0 < clock.seconds <= elapsed
        assert clock.num_traces >= 1
        whole = elapsed + 5  # seconds before it began, so that no pause in between moves it out
        clock.add(whole)  # a compilation that has just ended, with all of this inside
    assert clock.seconds == pytest.approx(whole)


# In processes of their own: kill -9, Ctrl-C, and several devices.


class Slow(NoProgress):
    """Gives a signal time to arrive between blocks, and says where the run is."""

    def phase(
        self, name: str, num_draws: int | None, *, done: int = 0, monitor: Monitor | None = None
    ) -> AbstractContextManager[Line]:
        class Sleeping(NoLine):
            def advance(self, num_draws: int) -> None:
                print(name, flush=True)
                time.sleep(0.05)

        return nullcontext(Sleeping())


def main(what: str, folder: str, out: str) -> None:
    """The process: run `what` in a folder, save its draws."""
    if what == "walk":
        draws = run(Path(folder), Slow())["sample"].draws
    else:
        draws = flat_draws(run_hmc(folder))
    assert chain_devices(NUM_CHAINS) == int(os.environ["JAX_NUM_CPU_DEVICES"])
    np.save(out, draws)


def run_hmc(folder: str | Path | None) -> Any:
    from credence.density.posterior import Posterior
    from credence.methods.hamiltonian import HMC
    from credence.methods.training import Training
    from credence.models.likelihoods.numbers import Normal
    from credence.models.networks.mlp import MLP
    from credence.models.priors import Gaussian

    x = np.linspace(-1, 1, 24)[:, None]
    posterior = Posterior(MLP(1, hidden=(4,)), Gaussian(), Normal(), (x, np.sin(3 * x)))
    method = HMC(
        num_draws=200, num_warmup=200, num_chains=NUM_CHAINS, training=Training(max_epochs=200)
    )
    return method.run(5, posterior, folder=folder, progress=Slow())


def flat_draws(ensemble: Any) -> np.ndarray:
    leaves = jax.tree.leaves(ensemble.params)
    return np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=-1)


def start(what: str, folder: Path, out: Path, num_devices: int = 1) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    command = f"import sys; sys.path[:0] = {[str(here), str(here.parent)]!r}; import test_driver; "
    command += f"test_driver.main({what!r}, {str(folder)!r}, {str(out)!r})"
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": str(num_devices)}
    return subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, text=True, env=environment
    )


def finish(process: subprocess.Popen[str], out: Path) -> np.ndarray:
    process.communicate(timeout=300)
    assert process.returncode == 0
    return np.load(out)


def wait_for_blocks(process: subprocess.Popen[str], num_blocks: int) -> None:
    assert process.stdout is not None
    for _ in range(num_blocks):
        if not process.stdout.readline():
            break


@pytest.mark.parametrize(
    ("what", "most_blocks"), [("walk", 2), pytest.param("hmc", 4, marks=pytest.mark.slow)]
)
def test_kill_9_at_any_instant(uninterrupted, tmp_path, what, most_blocks):
    """Killed three times at random instants, then finished."""
    chance = random.Random(0)
    for _ in range(3):
        process = start(what, tmp_path / "run", tmp_path / "draws.npy")
        wait_for_blocks(process, chance.randint(1, most_blocks))
        time.sleep(chance.uniform(0, 0.06))
        process.kill()
        process.communicate()
    assert not (tmp_path / "draws.npy").exists(), "it was over before it was killed"
    draws = finish(start(what, tmp_path / "run", tmp_path / "draws.npy"), tmp_path / "draws.npy")
    if what == "walk":
        expected = uninterrupted["sample"].draws
    else:
        expected = finish(start(what, tmp_path / "whole", tmp_path / "e.npy"), tmp_path / "e.npy")
    np.testing.assert_array_equal(draws, expected)


def test_ctrl_c_in_another_process(uninterrupted, tmp_path):
    out = tmp_path / "draws.npy"
    process = start("walk", tmp_path / "run", out)
    wait_for_blocks(process, 9)
    process.send_signal(signal.SIGINT)
    draws = finish(process, out)
    expected = uninterrupted["sample"].draws
    assert 10 <= draws.shape[1] < 60
    np.testing.assert_array_equal(draws, expected[:, : draws.shape[1]])
    np.testing.assert_array_equal(finish(start("walk", tmp_path / "run", out), out), expected)


@pytest.mark.parametrize("what", ["walk", pytest.param("hmc", marks=pytest.mark.slow)])
def test_the_number_of_devices_does_not_change_the_draws(tmp_path, what):
    out = tmp_path / "draws.npy"
    draws = [finish(start(what, tmp_path / str(devices), out, devices), out) for devices in (1, 2)]
    np.testing.assert_array_equal(*draws)


def test_a_run_begun_on_one_device_ends_on_two(uninterrupted, tmp_path):
    with pytest.raises(Stop):
        run(tmp_path / "run", AfterBlocks(9))
    out = tmp_path / "draws.npy"
    draws = finish(start("walk", tmp_path / "run", out, 2), out)
    np.testing.assert_array_equal(draws, uninterrupted["sample"].draws)
