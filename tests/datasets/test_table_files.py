"""Files to tables: every spelling of CSV that people save, and every file that is no table."""

import sys

import numpy as np
import pandas as pd
import pytest

from credence.datasets import load, read_table
from credence.errors import InputError

PLAIN = "size,colour,price\n1.5,red,10\n2.5,blue,20\n"


def write(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace(",", ", "),
        PLAIN.rstrip("\n"),
        "\n" + PLAIN + "\n\n",
        "\ufeff" + PLAIN,
        PLAIN.replace("red", '"red"').replace("size", '"size"'),
        PLAIN.replace(",", ";").replace(".", ","),
    ],
    ids=["comma", "semicolon", "tab", "crlf", "spaces", "no-end", "blank", "bom", "quoted", "1,5"],
)
def test_csv_is_read_however_it_was_saved(tmp_path, content):
    frame = read_table(write(tmp_path, content))
    assert list(frame.columns) == ["size", "colour", "price"]
    assert frame["size"].tolist() == [1.5, 2.5]
    assert frame["colour"].tolist() == ["red", "blue"]
    assert frame["price"].tolist() == [10, 20]


def test_a_delimiter_within_quotes_is_none(tmp_path):
    frame = read_table(write(tmp_path, '"price, in EUR, net";size\n1;2\n3;4\n'))
    assert list(frame.columns) == ["price, in EUR, net", "size"]
    assert frame["size"].tolist() == [2, 4]


def test_columns_may_be_read_as_text(tmp_path):
    path = write(tmp_path, "id ,x\n007,1\n,2\n")
    assert read_table(path, text_columns=["id"])["id"].tolist()[0] == "007"
    assert read_table(path, text_columns=["id"])["id"].isna().tolist() == [False, True]
    assert read_table(path)["id"].tolist()[0] == 7


def test_quoted_delimiters_and_line_ends_belong_to_the_value(tmp_path):
    frame = read_table(write(tmp_path, 'name,x\n"a, ""b""\nc",1\nd,2\n'))
    assert frame["name"].tolist() == ['a, "b"\nc', "d"]


@pytest.mark.parametrize("cell", ["", "?", "NA", "NaN", "null"])
def test_missing_values(tmp_path, cell):
    frame = read_table(write(tmp_path, f"x,y\n1,2\n{cell},3\n"))
    assert frame["x"].isna().tolist() == [False, True]
    assert pd.api.types.is_numeric_dtype(frame["x"])


def test_names_that_read_as_missing_may_stay(tmp_path):
    path = write(tmp_path, "id,x\nNA,1\nnull,2\n?,3\n,4\n")
    ids = read_table(path, text_columns=["id"], missing=False)["id"]
    assert ids.tolist() == ["NA", "null", "?", ""]
    assert read_table(path, text_columns=["id"])["id"].isna().all()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_empty_cell_of_a_single_column_is_a_row(tmp_path, end):
    frame = read_table(write(tmp_path, end + end.join(["x", "1", "", "3", "", ""])))
    assert frame["x"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        (b"\xef\xbb\xbf\r\n", "is empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "a PNG image"),
        (b"%PDF-1.7\n1 0 obj", "a PDF document"),
        (b"PK\x03\x04" + bytes(99), "an Excel workbook; save the sheet as CSV"),
        (b"\x1f\x8b\x08" + bytes(99), "compressed by gzip"),
        (b"a,b\n1,\x00\x01\x02\n", "binary data"),
        (bytes(range(128, 256)), "not in UTF-8: byte 0x80 in line 1"),
        ("name,x\ncafé,1\n".encode("latin-1"), "not in UTF-8: byte 0xe9 in line 2"),
        (b"PAR1\x15\x04 and then nonsense", "cannot be read"),
        (b"SQLite format 3\0", "an SQLite database"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 fields, the header has 2"),
        ("a,b,c\n1,2,3\n4,5\n", "line 3 has 2 fields, the header has 3"),
        ("x,y,x\n1,2,3\n", "more than one column named 'x'"),
        ("0.5,1.5\n2.5,3.5\n", "holds numbers, not column names"),
    ],
)
def test_what_is_not_a_table_is_refused_in_a_sentence(tmp_path, content, sentence):
    with pytest.raises(InputError, match=sentence):
        read_table(write(tmp_path, content))


@pytest.mark.parametrize("name", ["PAR1", "PAR100", "SQLite_ms", "SQLite"])
def test_headers_that_begin_as_other_formats_do(tmp_path, name):
    assert list(read_table(write(tmp_path, f"{name},price\n1,2\n")).columns) == [name, "price"]


def test_a_decimal_comma_at_the_very_end_is_seen(tmp_path):
    assert read_table(write(tmp_path, "a;b\n1;2,5"))["b"].tolist() == [2.5]


def test_header_of_whole_numbers_is_a_header(tmp_path):
    assert list(read_table(write(tmp_path, "0,1,2\n.1,.2,.3\n")).columns) == ["0", "1", "2"]


def test_line_numbers_count_blank_lines_and_line_ends_in_quotes(tmp_path):
    with pytest.raises(InputError, match="line 6 has 1 field"):
        read_table(write(tmp_path, 'a,b\n\n"1\n2",3\n\n4\n'))


def test_folders_and_unreadable_files(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
    write(tmp_path, PLAIN)
    with pytest.raises(InputError, match=r"no file '.*tabel.csv'\. Did you mean 'table.csv'"):
        read_table(tmp_path / "tabel.csv")


def test_a_name_that_is_neither_file_nor_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="Did you mean 'diabetes'"):
        read_table("diabetis")
    with pytest.raises(InputError, match="holds images, not a table"):
        read_table("mnist")


def test_a_known_name_gives_its_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.testing.assert_frame_equal(read_table("iris"), load("iris").frame)
    write(tmp_path, PLAIN, "iris")  # a file of that name comes first
    assert list(read_table("iris").columns) == ["size", "colour", "price"]


def test_text_columns_stay_as_they_are_written(tmp_path):
    content = "zip , size,code\n01234,1,007\n,2,\n99999,3,8\n"
    plain = read_table(write(tmp_path, content))
    assert plain["zip"].tolist()[::2] == [1234, 99999]
    kept = read_table(write(tmp_path, content), ["zip", "code", "no such column"])
    assert kept["zip"].tolist()[::2] == ["01234", "99999"]
    assert kept["zip"].isna().tolist() == [False, True, False]
    assert kept["code"].tolist()[::2] == ["007", "8"]
    assert kept["size"].tolist() == [1, 2, 3]


def test_parquet_is_known_by_its_content(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.5, np.nan], "name": ["a", None], "on": [True, False]})
    for name in ("table.parquet", "table.data"):
        frame.to_parquet(tmp_path / name)
        read = read_table(tmp_path / name)
        assert read["x"].isna().tolist() == [False, True]
        assert read["name"].isna().tolist() == [False, True]
    with pytest.raises(InputError, match="not Parquet"):
        read_table(write(tmp_path, PLAIN, "wrong.parquet"))


@pytest.mark.parametrize(
    ("index", "columns"),
    [
        (pd.Index(["tom", "ann"]), ["x"]),
        (pd.Index(["tom", "ann"], name="who"), ["who", "x"]),
        (pd.Index([7, 3], name="year"), ["year", "x"]),
        (pd.MultiIndex.from_arrays([["a", "b"], [1, 2]], names=[None, "year"]), ["year", "x"]),
    ],
)
def test_rows_of_parquet_are_numbered_whatever_their_index(tmp_path, index, columns):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": [1.5, 2.5]}, index=index).to_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")
    assert read.index.tolist() == [0, 1]
    assert read.columns.tolist() == columns
    assert read["x"].tolist() == [1.5, 2.5]


def test_an_index_of_parquet_named_as_a_column_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.5, 2.5]}, index=pd.Index([7, 3], name="x"))
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"more than one column named 'x'"):
        read_table(tmp_path / "t.parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install credence\[parquet\]"):
        read_table(write(tmp_path, b"PAR1", "table.parquet"))


def test_missing_permission(tmp_path, monkeypatch):
    path = write(tmp_path, PLAIN)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)  # root may read everything, so pretend
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_table(path)
