"""Small pictures for the page of tutorials, from figures of the executed notebooks.

python docs/make/thumbnails.py    # after `make docs`: it reads the cache of the executed notebooks
"""

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jupyter_cache import get_cache
from PIL import Image

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "docs" / "_build" / ".jupyter_cache"
OUT = ROOT / "docs" / "figures" / "gallery"
SIZE = (360, 220)
FIGURES = {
    "house_prices": 0,
    "credit_decision": 2,
    "counts": 0,
    "digits_and_strangers": 0,
    "how_wide": 1,
    "own_kernel_in_smc": 2,
    "active_learning": 0,
    "pretrained_flax": 0,
    "inverse_reinforcement": 0,
    "sentiment": 0,
}
"""The figure that stands for each tutorial."""


def main() -> None:
    """Write a picture for each tutorial that was executed."""
    OUT.mkdir(parents=True, exist_ok=True)
    cache = get_cache(str(CACHE))
    for record in cache.list_cache_records():
        name = Path(record.uri).stem
        if name in FIGURES:
            figure = list(figures(cache.get_cache_bundle(record.pk).nb))[FIGURES[name]]
            thumbnail(figure).save(OUT / f"{name}.png", optimize=True)
            print(OUT / f"{name}.png")


def figures(notebook: Any) -> Iterator[Image.Image]:
    """The pictures among the outputs of a notebook."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if png := output.get("data", {}).get("image/png"):
                yield Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")


def thumbnail(figure: Image.Image) -> Image.Image:
    """The figure, fitted into a white card."""
    figure.thumbnail(SIZE)
    card = Image.new("RGB", SIZE, "white")
    card.paste(figure, ((SIZE[0] - figure.width) // 2, (SIZE[1] - figure.height) // 2))
    return card.quantize(64)


if __name__ == "__main__":
    main()
