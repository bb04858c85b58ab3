"""Tables in, and named data sets: `read_table`, `check_table`, `load`, `list_datasets`."""

from credence.datasets.checks import CheckedTable, check_table, infer_task
from credence.datasets.registry import (
    DATASETS,
    Listed,
    Split,
    find,
    list_datasets,
    load,
    uci_splits,
)
from credence.datasets.specs import Dataset, DatasetSpec
from credence.datasets.tables import read_table

__all__ = [
    "DATASETS",
    "CheckedTable",
    "Dataset",
    "DatasetSpec",
    "Listed",
    "Split",
    "check_table",
    "find",
    "infer_task",
    "list_datasets",
    "load",
    "read_table",
    "uci_splits",
]
