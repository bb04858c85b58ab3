"""CSV and Parquet files to DataFrames; what is not a table is refused in a sentence."""

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from credence.datasets.names import check_names
from credence.errors import InputError, plural, quoted

DELIMITERS = ",;\t"
MISSING = ("?",)  # beside the empty cell and pandas' own NA, NaN, null, None, n/a, ...

# First bytes of files that people take for tables, and what to do about each.
OTHER_FORMATS = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"%PDF": "a PDF document; export the table from it as CSV",
    b"PK\x03\x04": "a ZIP archive or an Excel workbook; save the sheet as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file; save the sheet as CSV",
    b"\x1f\x8b": "compressed by gzip; unpack it",
    b"\x89HDF": "an HDF5 file; save the table as CSV or Parquet",
    b"\x93NUMPY": "a NumPy array; save it as CSV with a header line",
    b"SQLite format 3\0": "an SQLite database; export the table as CSV",
}


def read_table_file(
    path: Path, text_columns: Iterable[str] = (), *, missing: bool = True
) -> pd.DataFrame:
    """Reads a CSV file (comma, semicolon or tab; UTF-8) or a Parquet file, by its content.

    Args:
        path: the file.
        text_columns: columns of a CSV file that stay as they are written; see `read_csv`.
        missing: whether cells of a CSV file such as "NA" are missing values.
    Raises:
        InputError: if the file is missing, empty, a folder, unreadable or not a table.
    """
    start = _first_bytes(path)
    if not start:
        raise _empty(path)
    if re.match(rb"PAR1(?![\w,;\t\r\n \"'.-])", start):  # which begins no header
        return read_parquet(path)
    for magic, what in OTHER_FORMATS.items():
        if start.startswith(magic):
            raise InputError(f"The file {path} is not a CSV or Parquet table but {what}.")
    if path.suffix.lower() in {".parquet", ".pq"}:
        raise InputError(f"The file {path} is not Parquet: it does not begin with 'PAR1'.")
    return read_csv(path, text_columns, missing=missing)


def _empty(path: Path) -> InputError:
    return InputError(f"The file {path} is empty: it needs a header line and rows of values.")


def _first_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise InputError(f"{path} is a folder: name the CSV or Parquet file in it.")
    try:
        with path.open("rb") as stream:
            return stream.read(4096)
    except OSError as error:
        raise InputError(f"The file {path} cannot be read: {error.strerror}.") from error


def read_parquet(path: Path) -> pd.DataFrame:
    """Reads a Parquet file with pyarrow: a named index is a column, and rows are numbered."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            f"Reading the Parquet file {path} needs pyarrow: pip install credence[parquet]"
        ) from error
    try:
        frame = parquet.read_table(path).to_pandas()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"The Parquet file {path} cannot be read ({error}): write it again, or save it as CSV."
        ) from error
    return _numbered(path, frame)


def _numbered(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows by number; names of a pandas index become columns, and what has no name is left out."""
    unnamed = [level for level, name in enumerate(frame.index.names) if name is None]
    if len(unnamed) < frame.index.nlevels:
        frame = frame.droplevel(unnamed).reset_index(allow_duplicates=True)
        check_names(list(map(str, frame.columns)), f"The file {path}")
    return frame.reset_index(drop=True)


def read_csv(path: Path, text_columns: Iterable[str] = (), *, missing: bool = True) -> pd.DataFrame:
    """Reads a CSV file: UTF-8 with or without byte-order mark, quoted or not, a header line.

    The delimiter is the one of comma, semicolon and tab that the header has most of. With
    semicolons, numbers may have decimal commas. An empty cell, "?", "NA", "NaN", "null", "None"
    and "n/a" are missing values, unless `missing` is False; blank lines are skipped, but those
    between the rows of a single column are empty cells. A column of numbers becomes numbers,
    except the `text_columns`, where 01234 stays "01234"; names that are no columns do not matter.
    """
    text = _decoded(path)
    header_line = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(DELIMITERS, key=re.sub(r'"[^"]*"', "", header_line).count)
    columns = _checked_header(path, text, delimiter)
    try:
        return pd.read_csv(
            io.StringIO(text.strip("\r\n")),
            sep=delimiter,
            header=0,
            names=columns,
            dtype=dict.fromkeys(text_columns, str),
            decimal="," if delimiter == ";" and _has_decimal_commas(text) else ".",
            na_values=list(MISSING) if missing else None,
            keep_default_na=missing,
            skip_blank_lines=len(columns) > 1,
            skipinitialspace=True,
            index_col=False,
            low_memory=False,  # one type per column, decided on the whole column
        )
    except pd.errors.ParserError as error:
        raise InputError(f"The file {path} is not a table: {error}.") from error


def _decoded(path: Path) -> str:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"The file {path} is not a table, or not in UTF-8: byte {content[error.start]:#04x} "
            f"in line {line}. Save it as CSV in UTF-8."
        ) from error
    if "\0" in text:
        raise InputError(
            f"The file {path} is not a table: it holds binary data (zero bytes). "
            "Save it as CSV in UTF-8, or as Parquet."
        )
    return text


def _checked_header(path: Path, text: str, delimiter: str) -> list[str]:
    """The column names, once they are found unique and every row has as many fields."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        first = next((row for row in rows if any(map(str.strip, row))), None)
        if first is None:
            raise _empty(path)
        header = [name.strip() for name in first]
        check_names(header, f"The file {path}")
        if _looks_like_data(header):
            raise InputError(
                f"The first line of {path} holds numbers, not column names: "
                f"{quoted(header, most=4)}. Add a header line that names the columns."
            )
        for row in rows:
            if row and len(row) != len(header):
                raise InputError(
                    f"The file {path} is not a table: line {rows.line_num} has "
                    f"{plural(len(row), 'field')}, the header has {len(header)}. Put values that "
                    f"hold the delimiter {delimiter!r} in double quotes."
                )
    except csv.Error as error:
        raise InputError(
            f"The file {path} is not a table: {error} (line {rows.line_num})."
        ) from error
    return header


def _looks_like_data(header: list[str]) -> bool:
    """All names are numbers, and not merely 0, 1, 2, ... or years."""
    number = re.compile(r"[+-]?\d*\.?\d+(e[+-]?\d+)?", re.IGNORECASE)
    return all(number.fullmatch(name) for name in header) and not all(map(str.isdigit, header))


def _has_decimal_commas(text: str) -> bool:
    """Whether more cells look like 3,14 than like 3.14."""
    comma, point = (
        len(re.findall(rf"[;\n]-?\d+{mark}\d+(?=[;\r\n]|\Z)", text)) for mark in (",", r"\.")
    )
    return comma > point
