"""The table of `benchmarks/assurance.py`: verdicts beside the truth."""

import sys

from kept import ROOT, kept_rows

sys.path.insert(0, str(ROOT / "benchmarks"))
import assurance


def table() -> str:
    """Write the table of the committed rows."""
    return "\n".join(assurance.table_lines(kept_rows("assurance")))
