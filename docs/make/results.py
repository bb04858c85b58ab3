"""Run the published experiments and keep their results; `make results SIZE=laptop`.

    python docs/make/results.py --size laptop                  # all: many hours
    python docs/make/results.py --size laptop densities imdb   # only these
    python docs/make/results.py --keep FOLDER                  # of a run that is finished already
    python docs/make/results.py --keep FOLDER --part           # of a run with some of the problems

Runs are in `results-run/SIZE/NAME`. What is finished is not run again: after Ctrl-C, or on another
day, the same command goes on where it stopped. `python docs/make/pages.py` then makes the pages.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from kept import ROOT, keep, mixtures
from rows import add_dirty, commit, refuse_dirty

from credence.compare import EXPERIMENTS

CONVERGED_OR_NOT = (0, 3)
"""Exit statuses of an experiment that is finished."""


def main() -> None:
    """Run, keep, and say what failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of experiments; all by default")
    parser.add_argument("--size", default="laptop", help="smoke, laptop or paper")
    parser.add_argument("--seeds", type=int, help="repetitions; by default the experiment's own")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    parser.add_argument("--keep", type=Path, help="keep the results of this folder, run nothing")
    parser.add_argument(
        "--part", action="store_true", help="leave older results of other problems as they are"
    )
    add_dirty(parser)
    options = parser.parse_args()
    if options.keep:
        print(*keep_and_tell(options.keep, is_part=options.part, is_dirty=options.dirty), sep="\n")
        return
    if not options.dirty:
        refuse_dirty(commit())
    failed = []
    for name in options.names or sorted(EXPERIMENTS):
        folder = ROOT / "results-run" / options.size / name
        more = ["--seeds", str(options.seeds)] if options.seeds else []
        more += ["--jobs", str(options.jobs)] if options.jobs > 1 else []
        command = ["experiment", "run", name, "--size", options.size, "--out", str(folder), *more]
        print(f"== {name}", flush=True)
        ended = subprocess.run([sys.executable, "-m", "credence.cli", *command], check=False)
        if ended.returncode in CONVERGED_OR_NOT:
            print(*keep_and_tell(folder, is_dirty=options.dirty), sep="\n", flush=True)
        else:
            failed.append(name)
    sys.exit(f"Not finished: {', '.join(failed)}." if failed else 0)


def keep_and_tell(folder: Path, *, is_part: bool = False, is_dirty: bool = False) -> list[str]:
    """Keep the results of a folder; name the file, and the commits where there are several."""
    path = keep(folder, is_part=is_part, is_dirty=is_dirty)
    return [str(path), *mixtures(json.loads(path.read_text(encoding="utf-8")))]


if __name__ == "__main__":
    main()
