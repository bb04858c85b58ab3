"""Shared by all tests: quick compilation, checked annotations, on request checked keys, double
precision and a command line, and tests that take turns."""

import gc
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import jax
import jaxtyping
import pytest
import tools.checked_types  # noqa: F401  (the hook below finds it by name)
from tools.costs import has_turn, seconds_of_files
from tools.entry_points import declared

from credence import environment, extensions

CHECKED = (
    "storage schema netcdf spacing models density ensembles kernels adaptation engine methods "
    "datasets preprocessing report"
)
"""Packages whose annotations are checked.

The faces people see (estimators, cli) are not among them: they take anything and check it
themselves.
"""
# Most tests spend their time in the compiler, so most programs are compiled quickly rather than
# well, and each is compiled once for all workers and runs.
QUICK = {
    "jax_disable_most_optimizations": True,
    "jax_compilation_cache_dir": str(Path(__file__).parents[1] / ".jax_cache" / jax.__version__),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
for setting, value in QUICK.items():
    if setting.upper() not in os.environ:
        os.environ[setting.upper()] = str(value)  # for processes that tests start
        jax.config.update(setting, value)
jaxtyping.install_import_hook(
    [f"credence.{room}" for room in CHECKED.split()], "tools.checked_types.checked"
)


environment._max_programs = None  # tests count programs; `few_programs` below bounds them
extensions.installed = declared  # the installed list may be older
jax.config.update("jax_num_cpu_devices", 1)  # or the first fit of a worker would choose


@pytest.fixture
def size_of(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """How wrong a planted fault makes a result; `docs/make/faults.py` keeps what is told.

    The function takes the fault ("none" of what is right), on what it was planted, of what is
    wrong, and the numbers that say how much.
    """

    def tell(fault: str, *, on: str, of: str, **size: float) -> None:
        print(f"{fault}, {on}: {of} {size}")
        found = {name: float(value) for name, value in size.items()}
        record_property("planted", json.dumps({"fault": fault, "on": on, "of": of, **found}))

    return tell


NO_TURN = pytest.mark.slow(reason="no turn today")
"""Marks a test that runs on other days, and in `make test-slow`."""


def compiles_well(item: pytest.Item) -> bool:
    """Whether a test's programs are compiled as users have them: it is marked `optimized`, or
    `slow` by its author."""
    slow = item.get_closest_marker("slow")
    by_author = slow is not None and slow != NO_TURN.mark
    return by_author or item.get_closest_marker("optimized") is not None


QUICKLY = jax.config.read("jax_disable_most_optimizations")
_compiled_well = False
"""Whether the programs in memory are compiled as users have them."""


@pytest.fixture(autouse=True)
def optimized(request: pytest.FixtureRequest) -> None:
    """Compile as a test wants it, and forget programs that were compiled otherwise: they would
    round otherwise."""
    global _compiled_well
    wanted = compiles_well(request.node)
    if wanted != _compiled_well:
        jax.clear_caches()
        jax.config.update("jax_disable_most_optimizations", QUICKLY and not wanted)
        _compiled_well = wanted


@pytest.fixture
def checked_keys() -> Iterator[None]:
    """A random key used twice is an error.

    Not for all tests: JAX's checker takes a transposed array of keys, and the keys of BlackJAX's
    NUTS under vmap, for used ones.
    """
    with jax.debug_key_reuse(True):
        yield


MOST_MAPS = 20_000
"""Memory maps of the process above which compiled programs are dropped.

A process may have 65,530 on Linux, and the compiler dies at more.
"""


@pytest.fixture(autouse=True, scope="module")
def few_programs() -> Iterator[None]:
    """Compiled programs are forgotten before a worker has too many of them."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def float64() -> Iterator[None]:
    """Double precision for the length of a test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """A command line inside the test process, where JAX is set up already.

    run("fit", ...) -> (status, standard output, standard error).
    """
    from credence import cli, environment

    monkeypatch.setattr(environment, "configure", lambda **_: None)

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["credence", *map(str, words)])
        status = 0
        try:
            cli.main()
        except SystemExit as end:
            status = int(end.code or 0)
        out, err = capsys.readouterr()
        return status, out, " ".join(err.split())

    return call


os.environ.setdefault("CREDENCE_TEST_DAY", str(datetime.now(UTC).toordinal()))
"""Which variants have their turn; workers inherit it, so that all collect the same at midnight."""


LONGEST = (
    "tests/truth/test_truth.py::test_the_whole_table",
    "tests/estimators/test_sklearn.py",
    "tests/cli/test_cli.py",
    "tests/docs/test_site.py",
    "tests/test_fuzz.py",
)
"""Tests and files that begin, so that no worker is busy with them when all others are done."""


@pytest.hookimpl(tryfirst=True)  # before pytest selects by mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run every variant of a test marked `rotates(days)` once in so many days; else it is slow.

    Marked tests without variants take turns with each other; a module's mark is about variants.
    """
    day = int(os.environ["CREDENCE_TEST_DAY"])
    variants: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("rotates") and not item.get_closest_marker("slow"):
            test, *has_variants = item.nodeid.split("[")
            is_marked = any(mark.name == "rotates" for mark in item.own_markers)
            variants[test if has_variants or not is_marked else "alone"].append(item)
    for found in variants.values():
        for index, item in enumerate(found):
            days = min(item.get_closest_marker("rotates").args[0], len(found))
            if index % days != day % days:
                item.add_marker(NO_TURN)
    for item in items:
        if not has_turn(item, day):
            item.add_marker(NO_TURN)
    seconds = seconds_of_files(items, day)

    def order(item: pytest.Item) -> tuple[bool, float, bool]:
        """Dear files first; in a file what is compiled well, or programs would be forgotten again
        and again."""
        file = item.nodeid.split("::")[0]
        is_long = item.nodeid in LONGEST or file in LONGEST
        return not is_long, -seconds[file], not compiles_well(item)

    items.sort(key=order)
