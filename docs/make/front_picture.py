"""The picture of the front page: what a network knows, and where it says that it does not.

python docs/make/front_picture.py    # writes docs/figures/front.svg
"""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt

from credence import BNNRegressor

OUT = Path(__file__).parents[1] / "figures" / "front.svg"
BLUE, ORANGE = "#0072B2", "#D55E00"


def rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a wave, with noise that grows, and with none of them in the middle."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(-3, -0.8, 90), rng.uniform(1.0, 3, 90)])
    return x[:, None], np.sin(2 * x) + 0.4 * x + (0.05 + 0.12 * (x > 0)) * rng.standard_normal(180)


def main() -> None:
    """Fit what `fit` gives without options, and draw it."""
    x, y = rows(0)
    grid = np.linspace(-3.6, 3.6, 300)[:, None]
    model = BNNRegressor(random_state=0).fit(x, y)
    mean = model.predict(grid)
    matplotlib.rcParams["svg.hashsalt"] = "credence"
    figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
    for coverage, strength in ((0.95, 0.18), (0.5, 0.30)):
        lower, upper = model.predict_interval(grid, coverage=coverage)
        label = f"{coverage:.0%} of new points should lie here"
        axes.fill_between(grid[:, 0], lower, upper, color=BLUE, alpha=strength, lw=0, label=label)
    axes.plot(grid[:, 0], mean, color=BLUE, lw=2, label="prediction")
    axes.plot(x[:, 0], y, ".", color=ORANGE, ms=5, label="data")
    axes.set(xlabel="input", ylabel="target", xlim=(-3.6, 3.6), ylim=(-4, 4))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", ncols=2)
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()
