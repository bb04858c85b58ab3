"""OpenML's answers as files in scikit-learn's cache, so that its loader runs without a network."""

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np

HOST = "openml.org"


def put(cache: Path, number: int, name: str, target: str, columns: dict[str, np.ndarray]) -> None:
    """A data set in OpenML's format (ARFF and its descriptions), version 1, in the cache.

    Args:
        cache: what `data_home` names.
        number: OpenML's id.
        target: the default target, one of the columns.
        columns: numbers, or strings for a nominal column.
    """
    arff = _arff(name, columns).encode()
    url = f"https://www.{HOST}/data/v1/download/{number}/{name}.arff"
    description = {
        "id": str(number),
        "name": name,
        "version": "1",
        "description": "a small file",
        "format": "ARFF",
        "status": "active",
        "url": url,
        "file_id": str(number),
        "default_target_attribute": target,
        "md5_checksum": hashlib.md5(arff, usedforsecurity=False).hexdigest(),
    }
    features = [
        {
            "index": str(index),
            "name": column,
            "data_type": "nominal" if values.dtype.kind == "U" else "numeric",
            "is_target": str(column == target).lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for index, (column, values) in enumerate(columns.items())
    ]
    count = str(len(columns[target]))
    qualities = [{"name": "NumberOfInstances", "value": count}]
    found = {"data": {"dataset": [{"did": number, "name": name, "status": "active", "version": 1}]}}
    query = f"data/list/data_name/{name.lower()}/limit/2"
    api = "api/v1/json"
    answers = {
        f"{api}/{query}/data_version/1": found,
        f"{api}/{query}/status/active/data_version/1": found,
        f"{api}/{query}/data_version/1/status/active": found,
        f"{api}/data/{number}": {"data_set_description": description},
        f"{api}/data/features/{number}": {"data_features": {"feature": features}},
        f"{api}/data/qualities/{number}": {"data_qualities": {"quality": qualities}},
    }
    for place, answer in answers.items():
        _write(cache, place, json.dumps(answer).encode())
    for place in (url.split(f"{HOST}/", 1)[1], f"data/v1/download/{number}"):  # before 1.7: by id
        _write(cache, place, arff)


def _write(cache: Path, place: str, content: bytes) -> None:
    path = cache / "openml" / HOST / f"{place}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content))


def _arff(name: str, columns: dict[str, np.ndarray]) -> str:
    kinds = {
        column: "{" + ",".join(np.unique(values)) + "}" if values.dtype.kind == "U" else "NUMERIC"
        for column, values in columns.items()
    }
    head = [f"@RELATION {name}", *(f"@ATTRIBUTE {c} {kind}" for c, kind in kinds.items()), "@DATA"]
    rows = zip(*columns.values(), strict=True)
    return "\n".join([*head, *(",".join(map(str, row)) for row in rows)]) + "\n"
