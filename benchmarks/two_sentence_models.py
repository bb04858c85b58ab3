"""The step from a small to a large sentence model, and what it is made of, in table 2.

    CREDENCE_DATA=... python benchmarks/two_sentence_models.py --out FOLDER
    CREDENCE_DATA=... python benchmarks/two_sentence_models.py --out FOLDER --table

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
table 2: particles of a logistic regression on the small model's numbers are weighed for the large
model's, which are rotated towards them. Here scikit-learn's logistic regression, with the paper's
prior variance of 0.1, is fitted to the numbers of either model, and the weights of the small one
read the large one's leading numbers too: one network, nothing sampled, nothing weighed. Data: the
files of vectors by both models, as the experiment `imdb_two_models` reads them.
"""

import time
from typing import Any

import numpy as np
from rows import add_row, commit, commits, done, markdown, parser_of
from sklearn.linear_model import LogisticRegression

from credence.datasets import imdb_embeddings
from credence.datasets.prepared.sentence_models import MINILM, MPNET, SIZES

VARIANCE = 0.1
NUM_DRAWS = 30
LEARNT, READ = "learnt on", "read"


def score(weights: np.ndarray, bias: float, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Share of right labels, and the mean log loss in nats."""
    logit = (x @ weights + bias) * (2 * y - 1)
    return float(np.mean(logit > 0)), float(np.mean(np.logaddexp(0, -logit)))


def measured() -> list[dict[str, Any]]:
    """Fit both regressions and score three ways to use them."""
    x, y, x_test, y_test, _ = imdb_embeddings(MPNET, MINILM)
    num_large, num_small = SIZES[MPNET], SIZES[MINILM]
    parts = {MPNET: slice(num_large), MINILM: slice(num_large, None)}
    found = []

    def add(learnt: str, read: str, scores: tuple[float, float], start: float) -> None:
        row = {LEARNT: learnt, READ: read, "accuracy": scores[0], "log_loss": scores[1]}
        found.append(row | {"seconds": time.perf_counter() - start, "commit": commit()})

    fits = {}
    for name, columns in parts.items():
        start = time.perf_counter()
        fit = LogisticRegression(C=VARIANCE, max_iter=1000).fit(x[:, columns], y)
        fits[name] = fit.coef_[0], float(fit.intercept_[0])
        add(name, name, score(*fits[name], x_test[:, columns], y_test), start)
    start = time.perf_counter()
    weights, bias = fits[MINILM]
    large = x_test[:, parts[MPNET]]
    add(MINILM, MPNET, score(weights, bias, large[:, :num_small], y_test), start)
    start, rng = time.perf_counter(), np.random.default_rng(0)
    others = VARIANCE**0.5 * rng.normal(size=(NUM_DRAWS, num_large - num_small))
    drawn = [score(np.append(weights, each), bias, large, y_test) for each in others]
    mean = tuple(float(value) for value in np.mean(drawn, axis=0))
    add(MINILM, f"{MPNET}, other weights from the prior", (mean[0], mean[1]), start)
    return found


def table_lines(found: list[dict[str, Any]]) -> list[str]:
    """One row for each way."""
    rows = [
        [row[LEARNT], row[READ], f"{row['accuracy']:.4f}", f"{row['log_loss']:.4f}"]
        for row in found
    ]
    heads = ["weights learnt on", "read the numbers of", "accuracy", "log loss (nats)"]
    return [*markdown(heads, rows), "", f"Commit {commits(found)}."]


def main() -> None:
    """Run what is not done yet, and print the table."""
    options = parser_of(__doc__).parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not (options.table or done(options.out)):
        for row in measured():
            add_row(options.out, row)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
