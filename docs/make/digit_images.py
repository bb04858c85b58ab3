"""Figures 7.1 to 7.3 of the trans-dimensional thesis: which digits are mistaken, and how surely.

    CREDENCE_DATA=... python docs/make/digit_images.py    # two minutes, into results/digit_images

The thesis's experiment 10a: ten digits, 1 to 128 tanh neurons, softmax(.1 z), the published size.
"""

from pathlib import Path
from typing import Any

import numpy as np
from kept import keep_rows, kept_rows, reads_dirty
from parts import markdown, panels, write_figure
from rows import commit

from credence.html.markup import Html
from credence.html.svg import ACCENT, INK, SECOND, to_svg

NAME, PROBLEM, SEED = "digit_images", "digits_10a", 0
NUM_SHOWN = 5
READING = "Blue: the truth. Orange: the label that the networks give. Bars: mean probabilities."


def measured() -> dict[str, Any]:
    """Run the experiment; keep counts, and the images of the surest mistakes."""
    from credence_papers.transdimensional.tables import DIGITS

    (problem,) = (each for each in DIGITS.problems if each.name == PROBLEM)
    arrays = problem.data(SEED)
    images, _, _, test = problem.data.drawn(SEED)  # type: ignore[attr-defined]
    ensemble = problem.method(DIGITS.efforts["paper"]).run(SEED, problem.posterior(arrays))
    probabilities = np.asarray(ensemble.predictive(arrays.x_test).mean(), float)
    called, truth = probabilities.argmax(axis=1), np.asarray(arrays.y_test)
    sureness = np.where(called == truth, -1.0, probabilities.max(axis=1))
    surest = np.argsort(-sureness)[:NUM_SHOWN]
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (truth, called), 1)
    return {
        "problem": PROBLEM,
        "seed": SEED,
        "counts": counts.tolist(),
        "mistakes": [
            {
                "truth": int(truth[i]),
                "called": int(called[i]),
                "probabilities": probabilities[i].tolist(),
                "pixels": images[test[i]].astype(int).tolist(),
            }
            for i in surest
        ],
        "seconds": ensemble.cost.total_seconds,
        "commit": commit(is_needed=True),
    }


def table() -> str:
    """Write figure 7.1, the confusion matrix: rows are what is true, columns what is said."""
    (row,) = kept_rows(NAME)
    lines = [[f"**{digit}**", *map(blank, of)] for digit, of in enumerate(row["counts"])]
    return markdown(["truth", *map(str, range(10))], lines)


def blank(count: int) -> str:
    """Write a count, and nothing for none."""
    return str(count) if count else ""


def figures(folder: Path) -> None:
    """Draw the surest mistakes."""
    for row in kept_rows(NAME):
        write_figure(folder, "digit-mistakes", chart(row["mistakes"]))


def chart(mistakes: list[dict[str, Any]]) -> Html:
    """Images above, and the probabilities of their labels below."""
    ratios = {"height_ratios": (1, 1.1)}
    figure, axes = panels(2, len(mistakes), height=250, gridspec_kw=ratios)
    figure.subplots_adjust(left=0.05, right=0.99, bottom=0.1, top=0.93, wspace=0.2, hspace=0.15)
    for above, below, each in zip(*axes, mistakes, strict=True):
        pixels = np.reshape(each["pixels"], (8, 8))
        rows, columns = np.nonzero(pixels)
        sizes = pixels[rows, columns] * 2.4
        above.scatter(columns, -rows, s=sizes, color=INK, marker="s", linewidth=0)
        above.set(xlim=(-0.8, 7.8), ylim=(-7.8, 0.8), aspect="equal", xticks=(), yticks=())
        colours = [INK] * 10
        colours[each["called"]], colours[each["truth"]] = SECOND, ACCENT
        below.bar(range(10), each["probabilities"], color=colours, width=0.8)
        below.set(ylim=(0, 1), xticks=range(10), yticks=(0, 0.5, 1))
        below.tick_params(labelsize=7)
    return to_svg(figure, "digit-mistakes", "The surest mistakes among the digits", READING)


def main() -> None:
    """Run the experiment, and keep what is shown."""
    is_dirty = reads_dirty(__doc__)
    keep_rows(NAME, [measured()], is_dirty=is_dirty)
    print(table())


if __name__ == "__main__":
    main()
