"""A folder to write into is made, or refused before anything is flown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sar_core.errors import InputError
from sar_eval.bag.folders import ready_folder


def test_it_is_made_with_all_above_it_and_one_that_is_there_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    ready_folder(folder)
    (folder / "mine").touch()
    ready_folder(folder)
    assert (folder / "mine").exists()


@pytest.mark.parametrize(("below", "said"), [("taken", "a file of this name exists"), ("taken/b", "Not a directory")])
def test_a_file_in_the_way_is_told(below: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(InputError, match=rf"taken.*: cannot create the output folder \({said}\)"):
        ready_folder(tmp_path / below)


def test_a_folder_nobody_may_write_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    with pytest.raises(InputError, match="the output folder is not writable"):
        ready_folder(tmp_path)
