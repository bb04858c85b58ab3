"""Measure the structure of the code: rooms, arrows, circles, sizes, and who names a method.

A room is a package or a module; an arrow is an import. Run it in a checkout:

    python docs/make/structure.py            # a table of numbers
    python docs/make/structure.py --write    # the same, and the map on the architecture page
"""

import argparse
import re
import statistics
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import grimp

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PACKAGES = ("credence", "credence_papers")
SHARED = ("ensembles", "estimators", "runs", "report", "cli", "html", "engine", "density", "models")
"""Layers that every method uses, and that name none."""
METHOD_WORDS = re.compile(
    r"architecture|emulat|log_evidence|max_width|max_depth|transdimensional|mlsmc|\bces\b"
)
"""What only a single method knows of."""
START, END = "<!-- map: made by docs/make/structure.py -->", "<!-- end of map -->"


class Structure(NamedTuple):
    """What the imports and the files of a checkout say."""

    layers: list[str]
    """Rooms of `credence`, top first."""
    sentences: dict[str, str]
    """What each room says of itself."""
    arrows: Counter[tuple[str, str]]
    """(from, to) between rooms of `credence` -> number of imports."""
    up: list[tuple[str, str]]
    """Imports from a lower room to a higher one."""
    circles: list[set[str]]
    """Groups of modules that import each other."""
    lines: dict[str, int]
    """File -> lines."""
    names: list[str]
    """Places in shared layers that name what belongs to one method."""


def measure(root: Path = ROOT) -> Structure:
    """Read the imports and files of a checkout."""
    found = [package for package in PACKAGES if (root / package).is_dir()]
    sys.path.insert(0, str(root))
    graph = grimp.build_graph(*found, cache_dir=None)
    imports = [
        (module, other)
        for module in graph.modules
        for other in graph.find_modules_directly_imported_by(module)
    ]
    layers = declared_layers(root)
    rank = {room: place for place, room in enumerate(layers)}
    rooms = [(room_of(one), room_of(other)) for one, other in imports]
    arrows = Counter((a, b) for a, b in rooms if a != b and a in rank and b in rank)
    up = sorted((one, other) for one, other in imports
                if rank.get(room_of(other), 99) < rank.get(room_of(one), -1))  # fmt: skip
    files = [path for package in found for path in sorted((root / package).rglob("*.py"))]
    return Structure(
        layers,
        {room: sentence(root, room) for room in layers},
        arrows,
        up,
        circles(imports),
        {str(path.relative_to(root)): len(path.read_text().splitlines()) for path in files},
        method_names(root),
    )


def declared_layers(root: Path) -> list[str]:
    """The layers of `credence`, top first, as import-linter checks them."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    lists = [each["layers"] for each in contracts if each.get("containers") == ["credence"]]
    return [room.strip() for layer in lists[0] for room in layer.split(":")]


def room_of(module: str) -> str:
    """The room of `credence` that a module is in; the package's name for others."""
    package, _, rest = module.partition(".")
    return rest.split(".")[0] if package == "credence" and rest else package


def sentence(root: Path, room: str) -> str:
    """The first sentence of a room's docstring."""
    package = root / "credence" / room / "__init__.py"
    path = package if package.exists() else package.parent.with_suffix(".py")
    match = re.match(r'"""(.+?)(?:\n\n|""")', path.read_text(), re.DOTALL)
    return " ".join(match[1].split()) if match else ""


def circles(imports: list[tuple[str, str]]) -> list[set[str]]:
    """Groups of more than one module from each of which every other can be reached."""
    following: dict[str, set[str]] = {}
    for one, other in imports:
        following.setdefault(one, set()).add(other)

    def reached(start: str) -> set[str]:
        seen, waiting = set(), [start]
        while waiting:
            for other in following.get(waiting.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    from_each = {module: reached(module) for module in following}
    groups = {frozenset(b for b in from_each[a] if a in from_each.get(b, ())) for a in from_each}
    return [set(group) for group in groups if len(group) > 1]


def method_names(root: Path) -> list[str]:
    """Lines of the shared layers that name what belongs to one method."""
    return [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for room in SHARED
        for path in sorted((root / "credence" / room).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if METHOD_WORDS.search(line)
    ]


def numbers(found: Structure) -> dict[str, str]:
    """The structure in figures."""
    folders = Counter(
        str(Path(file).parent) for file in found.lines if not file.endswith("__init__.py")
    )
    longest = sorted(found.lines.items(), key=lambda item: -item[1])[:10]
    return {
        "files": f"{len(found.lines)}",
        "lines": f"{sum(found.lines.values()):,}",
        "lines of a file, median": f"{statistics.median(found.lines.values()):.0f}",
        "longest files": ", ".join(f"{file} {lines}" for file, lines in longest),
        "fullest folders": ", ".join(f"{name} {count}" for name, count in folders.most_common(5)),
        "rooms of credence": f"{len(found.layers)}",
        "arrows between rooms": f"{len(found.arrows)}",
        "imports that run up": f"{len(found.up)}",
        "circles": f"{len(found.circles)}",
        "names of single methods in shared layers": f"{len(found.names)}",
    }


def drawing(found: Structure) -> str:
    """The rooms from top to bottom, and to which lower ones their arrows go."""
    width = max(map(len, found.layers))
    rows = []
    for room in found.layers:
        below = [other for other in found.layers if (room, other) in found.arrows]
        rows.append(f"{room:<{width}}  -> {', '.join(below) or 'nothing of ours'}")
    return "\n".join(rows)


def map_text(found: Structure) -> str:
    """The part of docs/explanation/architecture.md that is made from the code."""
    table = [f"| `{room}` | {found.sentences[room]} |" for room in found.layers]
    return "\n".join([
        START, "", "| part | what it is |", "|---|---|", *table, "",
        "Who imports whom (top imports only what is below):", "", "```text", drawing(found), "```",
        "", END,
    ])  # fmt: skip


def written_map(page: str) -> str:
    """The map that a page holds."""
    return page[page.index(START) : page.index(END) + len(END)]


def main() -> None:
    """Print the numbers; on request write the map."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="checkout to measure")
    parser.add_argument("--write", action="store_true", help="write the map into the page")
    parser.add_argument("--names", action="store_true", help="list methods named where shared")
    options = parser.parse_args()
    found = measure(options.root.resolve())
    for name, value in numbers(found).items():
        print(f"{name}: {value}")
    for one, other in found.up:
        print(f"up: {one} -> {other}")
    if options.names:
        print("\n".join(found.names))
    if options.write:
        page = PAGE.read_text()
        PAGE.write_text(page.replace(written_map(page), map_text(found)))


if __name__ == "__main__":
    main()
