"""Compiled programs on disk do not fill it."""

import os
from pathlib import Path

from credence.program_cache import drop_oldest, folder_within, programs_in


def test_the_oldest_programs_go_first(tmp_path: Path) -> None:
    for age, name in enumerate("abcd"):
        file = tmp_path / f"jit_{name}-cache"
        file.write_bytes(b"." * 10)
        os.utime(file, (1000 - age, 1000 - age))
    (tmp_path / "another file").write_bytes(b"." * 1000)
    drop_oldest(tmp_path, most_bytes=25)
    assert sorted(file.name for file in programs_in(tmp_path)) == ["jit_a-cache", "jit_b-cache"]
    assert (tmp_path / "another file").exists()


def test_a_folder_that_is_not_there_needs_nothing(tmp_path: Path) -> None:
    folder = folder_within(tmp_path)
    drop_oldest(folder)
    assert not folder.exists()
    assert folder == folder_within(tmp_path)
    assert folder.is_relative_to(tmp_path)
