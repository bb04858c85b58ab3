"""What pages and README have of numbers, made from the results in `results/`.

    python docs/make/pages.py            # writes the pages
    python docs/make/pages.py --check    # names those that differ, and ends with status 1

A page that cannot be made is named with the reason and left as it is; the status is then 1, too.
A page is made whole, or has parts between `<!-- made: NAME -->` and `<!-- end -->`, and sentences
with numbers, see `phrases`.
"""

import argparse
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import architectures
import benchmark_tables
import budgets
import default_page
import densities
import digit_images
import emulation_pays
import experiment_tables
import faults
import fbnn_dots
import fbnn_published
import features
import gaussians
import multilevel
import networks
import peers
import phrases
import proposals
import samplers
import speed_ups
import two_states
import verdict_rule
from kept import kept

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
PART = re.compile(r"(<!-- made: ([\w-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def truth_table() -> str:
    """The page of `make truth`."""
    from truth.page import page

    return page(kept("truth", "full"))


WHOLE: dict[str, Callable[[], str]] = {
    "docs/results/default_model.md": default_page.page,
    "docs/results/truth.md": truth_table,
}
PARTS: dict[str, Callable[[], str]] = {
    "assurance": partial(benchmark_tables.table, "assurance"),
    "boston-halves": partial(benchmark_tables.table, "boston_halves"),
    "cifar10-features": features.tables,
    "cifar10-strange": features.strange,
    "default-classes-headline": peers.headline_of_labels,
    "default-model-headline": peers.headline,
    "densities": densities.table,
    "digit-mistakes": digit_images.table,
    "emulation": partial(benchmark_tables.table, "emulation"),
    "encoded-inputs": partial(benchmark_tables.table, "encoded_inputs"),
    "fbnn": partial(experiment_tables.sections, "fbnn", max_seconds=50),
    "fbnn-as-published": fbnn_published.table,
    "fbnn-converged": speed_ups.table,
    "fbnn-first-version": partial(experiment_tables.sections, "fbnn_first_version", max_seconds=60),
    "fbnn-gaussians": gaussians.table,
    "fbnn-full": partial(experiment_tables.sections, "fbnn_full", max_seconds=50),
    "fbnn-reasons": partial(experiment_tables.reasons, "fbnn"),
    "friction": partial(benchmark_tables.table, "friction"),
    "grouped-rows": partial(benchmark_tables.table, "grouped_rows"),
    "imdb": partial(experiment_tables.sections, "imdb", size="laptop"),
    "imdb-all": partial(experiment_tables.sections, "imdb", size="paper"),
    "imdb-two": partial(experiment_tables.sections, "imdb_two_models", size="paper"),
    "imdb-reasons": partial(experiment_tables.reasons, "imdb"),
    "large-table": partial(benchmark_tables.table, "large_table"),
    "level-weights": partial(benchmark_tables.table, "level_weights"),
    "many-modes": partial(benchmark_tables.table, "many_modes"),
    "memory": partial(benchmark_tables.table, "memory"),
    "minibatches": samplers.by_rows_a_step,
    "mnist-ood": partial(experiment_tables.sections, "mnist_ood"),
    "mnist-ood-reasons": partial(experiment_tables.reasons, "mnist_ood"),
    "multilevel-evidence": multilevel.evidence,
    "multilevel-runs": multilevel.runs,
    "multilevel-savings": multilevel.savings,
    "multilevel-steps": multilevel.steps,
    "network-sizes": partial(benchmark_tables.table, "network_sizes"),
    "new-output-weights": proposals.table,
    "nonlinear-networks": networks.table,
    "planted-jumps": faults.table,
    "particles": partial(benchmark_tables.table, "particles"),
    "prior-rates": multilevel.rates,
    "samplers": samplers.table,
    "stochastic-gradient-speed": partial(benchmark_tables.table, "stochastic_gradient"),
    "throughput": partial(benchmark_tables.table, "throughput"),
    "two-sentence-models": partial(benchmark_tables.table, "two_sentence_models"),
    "two-states": two_states.table,
    "verdict-rule": verdict_rule.table,
    **architectures.parts(),
}
FIGURES: tuple[Callable[[Path], None], ...] = (
    architectures.figures,
    budgets.figures,
    densities.figures,
    digit_images.figures,
    emulation_pays.figures,
    fbnn_dots.figures,
    features.figures,
    gaussians.figures,
    multilevel.cost_figures,
    multilevel.rate_figures,
)
"""What draws into a folder."""


def made(path: Path) -> str:
    """The text of a page with its numbers made again."""
    name = path.relative_to(ROOT).as_posix()
    if name in WHOLE:
        return WHOLE[name]()
    text = path.read_text(encoding="utf-8")
    text = PART.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}{part[3]}", text)
    return phrases.rewritten(text, phrases.phrases_of(name))


def paths() -> list[Path]:
    """All pages that may have numbers: both READMEs and the docs."""
    readmes = [ROOT / "README.md", ROOT / "benchmarks" / "README.md"]
    return [*readmes, *sorted((ROOT / "docs").glob("*/*.md"))]


@contextmanager
def noted(faults: list[str], name: str) -> Iterator[None]:
    """Note what an error stopped, and go on."""
    try:
        yield
    except Exception as error:
        faults.append(f"not made: {name}: {told(error)}")


def told(error: Exception) -> str:
    """Tell an error and the line of these scripts that it comes from: an assertion has no words."""
    here = str(Path(__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    place = [each for each in frames if each.filename.startswith(here)][-1]
    where = f"{Path(place.filename).name}, line {place.lineno}: {place.line}"
    return f"{type(error).__name__}: {error} ({where})"


def main() -> None:
    """Write the pages, or name those that differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check = parser.parse_args().check
    faults: list[str] = []
    for draw in () if is_check else FIGURES:
        with noted(faults, f"{draw.__module__}.{draw.__name__}"):
            draw(ROOT / "docs" / "figures")
    differ = []
    for path in paths():
        name = path.relative_to(ROOT).as_posix()
        with noted(faults, name):
            text = made(path)
            if text != path.read_text(encoding="utf-8"):
                differ.append(f"{'differs' if is_check else 'written'}: {name}")
                if not is_check:
                    path.write_text(text, encoding="utf-8")
    print(*differ, *faults, sep="\n")
    sys.exit(int(bool(faults or (is_check and differ))))


if __name__ == "__main__":
    main()
