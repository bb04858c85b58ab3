"""Tables in, and named data sets: `read_table`, `check_table`, `load`, `list_datasets`.

Arrays for published experiments besides: decisions (`halfcheetah`, `mountain_car`), `spiral`,
`xor`, `principal_digits`, `imdb_embeddings`; images made worse, `corrupted`; and inputs that stay
on disk, `make_regression`, `make_classification`, `open_data`. `read_nacc` reads the Alzheimer data
from the user's own file.
"""

from credence.datasets.catalogue.registry import (
    DATASETS,
    Listed,
    Split,
    find,
    list_datasets,
    load,
    uci_splits,
)
from credence.datasets.catalogue.specs import Dataset, DatasetSpec
from credence.datasets.checks import CheckedTable, check_table, infer_task
from credence.datasets.prepared.corruptions import corrupted
from credence.datasets.prepared.digits import Digits, principal_digits
from credence.datasets.prepared.embeddings import Embeddings, imdb_embeddings
from credence.datasets.prepared.inverse_rl import Decisions, halfcheetah, mountain_car
from credence.datasets.prepared.large import OnDisk, make_classification, make_regression, open_data
from credence.datasets.prepared.nacc import read_nacc
from credence.datasets.prepared.simulated import spiral, xor
from credence.datasets.tables import read_table

__all__ = [
    "DATASETS",
    "CheckedTable",
    "Dataset",
    "DatasetSpec",
    "Decisions",
    "Digits",
    "Embeddings",
    "Listed",
    "OnDisk",
    "Split",
    "check_table",
    "corrupted",
    "find",
    "halfcheetah",
    "imdb_embeddings",
    "infer_task",
    "list_datasets",
    "load",
    "make_classification",
    "make_regression",
    "mountain_car",
    "open_data",
    "principal_digits",
    "read_nacc",
    "read_table",
    "spiral",
    "uci_splits",
    "xor",
]
