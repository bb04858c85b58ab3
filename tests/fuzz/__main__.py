"""python -m fuzz [--mutations N] [--seed S] [--start I]: status 1 where there is a fault."""

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from credence import environment

from .trial import MOST_MEMORY, Fuzz


def main() -> int:
    """Spoil, use, count."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first mutation")
    arguments = parser.parse_args()
    environment.configure()
    with tempfile.TemporaryDirectory() as folder:
        fuzz, results, start = Fuzz(Path(folder), arguments.seed), Counter(), time.perf_counter()
        fuzz.limit_memory()
        before = _peak()
        for outcome in fuzz.outcomes(arguments.mutations, arguments.start):
            results[outcome.result.split()[0]] += 1
            if outcome.result.startswith("FAULT"):
                print(f"{outcome.number}  {outcome.what}\n{outcome.result}", flush=True)
            if results.total() % 1000 == 0:
                print(dict(results), flush=True)
        grown = _peak() - before
    seconds = time.perf_counter() - start
    print(f"{dict(results)} in {seconds:.0f} s; {grown / 2**20:.0f} MiB more memory at most")
    return 1 if results["FAULT"] or grown > MOST_MEMORY else 0


def _peak() -> int:
    """Most memory so far of this process and of those it started, in bytes."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return 1024 * max(resource.getrusage(each).ru_maxrss for each in who)


if __name__ == "__main__":
    sys.exit(main())
