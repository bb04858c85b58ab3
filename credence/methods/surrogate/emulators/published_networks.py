"""The emulating networks that the FBNN paper and its public code describe, by data set."""

from dataclasses import replace
from typing import Any

from credence.errors import InputError, did_you_mean
from credence.methods.training import Training

TABLE_2: dict[str, tuple[tuple[int, ...], float]] = {
    "boston": ((3, 32), 0.7),
    "wine": ((3, 32), 0.5),
    "alzheimer": ((4, 64), 0.5),
    "year": ((4, 64), 0.5),
    "simulated": ((8, 64, 32), 0.5),
    "adult": ((4, 32), 0.5),
    "mnist": ((3, 64), 0.5),
    "celeba": ((3, 32), 0.5),
    "svhn": ((4, 64, 32), 0.7),
}
"""Widths of the emulators and the rate of dropout on inputs and first hidden layer: table 2 of
Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with neural networks" (2024);
all ReLU, 1000 epochs. Alzheimer and simulated are the same for regression and classification."""
PUBLIC_CODE = "public_code"
"""The widths of the emulator of the one example in the public code: 256-512 ReLU, no dropout.

There it learns the outputs' sigmoids from the weights as they are; ours learns, as any `Network`,
principal components of the outputs from standardised weights."""
ADAM = Training(
    max_epochs=1000,
    learning_rate=0.01,
    batch_size=64,
    validation_fraction=0.0,
    patience=1_000_000,
)
"""The paper's number of epochs by the public code's optimiser, for the paper names none."""
PUBLIC_ADAM = replace(ADAM, max_epochs=200)
"""The public code's number of epochs. It also ends after 10 that bring nothing, which is left out:
our emulators learn for as long, or longer."""
EVERY = 1000
"""Components: all that a few hundred draws have, as the published emulators emulate all outputs."""


def published_settings(dataset: str) -> dict[str, Any]:
    """The settings of `Network` for a data set of the paper, or for "public_code".

    Raises:
        InputError: for a data set that none was made for.
    """
    known = {**TABLE_2, PUBLIC_CODE: ((256, 512), 0.0)}
    if dataset not in known:
        raise InputError(
            f"No emulator was published for the data set {dataset!r}: there are those of "
            f"{', '.join(TABLE_2)}, and '{PUBLIC_CODE}', that of the public example. For other "
            "data give widths of your own: Network(hidden=...)." + did_you_mean(dataset, known)
        )
    hidden, rate = known[dataset]
    return {
        "hidden": hidden,
        "activation": "relu",
        "dropout": rate,
        "num_components": EVERY,
        "per_chain": True,
        "training": PUBLIC_ADAM if dataset == PUBLIC_CODE else ADAM,
    }
