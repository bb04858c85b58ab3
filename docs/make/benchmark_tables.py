"""Tables of benchmarks that write their own, from committed rows."""

from importlib import import_module

from kept import kept_rows


def table(name: str) -> str:
    """Write the table of `benchmarks/NAME.py` from `results/NAME/rows.jsonl`."""
    return "\n".join(import_module(name).table_lines(kept_rows(name)))
