"""Where a campaign's bags lie: in its folder, or below an fsspec URL that workers anywhere can write to.

A worker leaves a bag in the scratch; the campaign puts it under its name once it knows what it is. A bag whose
metadata.yaml is there is whole: below a URL, where nothing can be renamed in one step, that file comes last.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any, Protocol

from sar_core.errors import InputError, MissingDependencyError, RunError

BAGS, FLYING = "bags", ".flying"
LAST = "metadata.yaml"


class BagStore(Protocol):
    """What a campaign asks of the place of its bags; ``scratch`` is handed to workers as it is."""

    scratch: str

    def has(self, name: str) -> bool: ...

    def keep(self, flown: str, name: str) -> str:
        """Put what a worker flew under a name; returns what a record calls it."""

    def clear(self) -> None:
        """Take away what nobody is flying any more."""


class FolderBags:
    """In the campaign's folder, which every worker sees under the same path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scratch = str((folder / BAGS / FLYING).resolve())

    def has(self, name: str) -> bool:
        return (self.folder / BAGS / name).exists()

    def keep(self, flown: str, name: str) -> str:
        source, place = Path(flown), self.folder / BAGS / name
        if not source.is_dir():
            raise RunError(f"{flown}: the bag is not seen from here; all workers must have the folder under this path")
        try:
            shutil.rmtree(place, ignore_errors=True)
            source.rename(place)
            source.parent.rmdir()
        except OSError as error:
            raise RunError(f"{place}: cannot put the bag there ({error.strerror})") from error
        return f"{BAGS}/{name}"

    def clear(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)


class UrlBags:
    """Below a URL; workers need no path in common with us, only the right to write there."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.scratch = f"{self.url}/{FLYING}"
        self._files, self._root = _file_system(self.url)

    def has(self, name: str) -> bool:
        return bool(self._files.exists(f"{self._root}/{name}/{LAST}"))

    def keep(self, flown: str, name: str) -> str:
        source, place = f"{self._root}{flown.removeprefix(self.url)}", f"{self._root}/{name}"
        try:
            if self._files.exists(place):
                self._files.rm(place, recursive=True)
            self._files.makedirs(place, exist_ok=True)
            for file in _last_things_last(self._files.ls(source, detail=False)):
                self._files.mv(file, f"{place}/{file.rsplit('/', 1)[1]}")
            self._files.rm(source.rsplit("/", 1)[0], recursive=True)
        except OSError as error:
            raise RunError(f"{self.url}/{name}: cannot put the bag there ({error})") from error
        return f"{self.url}/{name}"

    def clear(self) -> None:
        scratch = f"{self._root}/{FLYING}"
        if self._files.exists(scratch):
            self._files.rm(scratch, recursive=True)


def open_bags(folder: Path, url: str | None) -> BagStore:
    """The store of a campaign; a URL nobody here can write to is refused before anything is flown."""
    return FolderBags(folder) if url is None else UrlBags(url)


def is_url(place: str) -> bool:
    return "://" in place


def send_bag(bag: Path, scratch: str) -> str:
    """Take a bag from this machine to the scratch of a store; returns its address there."""
    address = f"{scratch}/{uuid.uuid4().hex}/{bag.name}"
    files, place = _file_system(address)
    files.makedirs(place, exist_ok=True)
    for file in _last_things_last([str(file) for file in bag.iterdir()]):
        files.put_file(file, f"{place}/{file.rsplit('/', 1)[1]}")
    return address


def _last_things_last(files: list[str]) -> list[str]:
    return sorted(files, key=lambda file: (file.endswith(f"/{LAST}"), file))


def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs

        files, root = url_to_fs(url)
    except ImportError as error:
        raise MissingDependencyError(
            f"{url}: {error}; get fsspec with: pip install 'sar-eval[cluster]', and what its protocol needs"
        ) from error
    except ValueError as error:
        raise InputError(f"bags-url = {url}: {error}") from error
    return files, str(root).rstrip("/")
