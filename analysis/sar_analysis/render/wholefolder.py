"""Folders that are written whole: made beside their place and renamed into it, over an earlier one of ours only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sar_core.errors import InputError


@dataclass(frozen=True)
class FolderKind:
    """A kind of folder: what it is called, its files by name, and its one folder of pictures with their endings."""

    name: str
    files: tuple[str, ...]
    pictures: str
    endings: tuple[str, ...]

    def check_place(self, out: Path) -> None:
        """Refuse a place that holds anything but an earlier folder of this kind."""
        if out.is_symlink() or (out.exists() and not out.is_dir()):
            raise InputError(f"{out}: exists and is not a folder; choose another --out")
        if not out.exists():
            return
        foreign = sorted(str(file.relative_to(out)) for file in out.rglob("*") if not self._holds(file, out))
        if foreign:
            told = f"holds {foreign[0]}, which is no part of {self.name}"
            raise InputError(f"{out}: {told}; choose another or an empty --out")

    def _holds(self, file: Path, out: Path) -> bool:
        if file.parent == out:
            return file.name in self.files or (file.name == self.pictures and file.is_dir())
        return file.parent == out / self.pictures and file.suffix in self.endings

    @contextmanager
    def made(self, out: Path) -> Iterator[Path]:
        """An empty folder to fill; in its place when the block ends, gone if it fails, and never seen half full."""
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as beside:
            fresh = Path(beside) / "new"
            fresh.mkdir()
            yield fresh
            self.check_place(out)
            if out.exists():
                os.rename(out, Path(beside) / "old")
            os.rename(fresh, out)
