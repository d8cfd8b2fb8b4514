"""The code that decides what an episode comes to: a hash of every source file that flies, and what lies under them.

Of sar_eval these are the rooms that fly and what they import, so that a module that is added or moved is covered by
itself. Verbs, campaigns, studies and analysis are no part of it, for a help text must not end a campaign;
nor is ``sar_eval/__init__.py``, which holds the package's version.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sar_core.errors import ContractError

GAZEBO = "sar_gazebo"
WHOLE = ("sar_core", "sar_sim", "sar_swarm", GAZEBO)
"""Packages of which every module counts."""
PACKAGE = "sar_eval"
FLIGHT = ("sar_eval.scenario", "sar_eval.backends", "sar_eval.episode", "sar_eval.px4", "sar_eval.sitl")
"""Rooms that fly, with all their modules, and whatever they import within sar_eval."""
STAGE1 = ("sar_eval.stage1",)
"""The room that makes a Stage-1 file."""
TELLING = ("sar_eval.backends.machine",)
"""Imported by what flies, but only to tell people something: left out, with all that they import."""
LIBRARIES = ("numpy", "numba", "llvmlite", "scipy")
"""Libraries whose version may change bits of a result."""
_CORE_NAMES = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename")

FileHashes = dict[str, str]


def code() -> dict[str, Any]:
    """Everything above as plain data; sources are read again where one has changed since the last call."""
    versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    python = ".".join(platform.python_version_tuple()[:2])
    return {**_sources(_stamps()), **versions, "python": python, "openblas": core_type()}


def first_difference(theirs: Any, ours: Any) -> tuple[str, str, str] | None:
    """The first part of two codes that is not the same in both: its name, theirs and ours."""
    there, here = dict(leaves(theirs)), dict(leaves(ours))
    for key in {**here, **there}:
        one, two = str(there.get(key, "absent")), str(here.get(key, "absent"))
        if one != two:
            return key, one[:12], two[:12]
    return None


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values at the ends of nested mappings, such as ``sar_eval.px4/world.py``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def folders() -> dict[str, Path]:
    """Where the packages lie that decide; one that is missing is an error, but for Gazebo's, which a build may lack."""
    found = {package: importlib.util.find_spec(package) for package in (*WHOLE, PACKAGE)}
    missing = [name for name, spec in found.items() if spec is None and name != GAZEBO]
    if missing:
        raise ContractError(f"package {missing[0]}: is not installed here, but decides what an episode comes to")
    return {name: Path(spec.origin).parent for name, spec in found.items() if spec is not None and spec.origin}


def sources(places: Mapping[str, Path]) -> dict[str, FileHashes]:
    """Hash of each source file that flies, by package and path in it, wherever a copy of the packages lies."""
    files = {package: sorted(place.rglob("*.py")) for package, place in places.items() if package in WHOLE}
    besides = [found for file in files.get(GAZEBO, ()) for found in _imported(file, places[PACKAGE])]
    files[PACKAGE] = followed(FLIGHT, places[PACKAGE], besides)
    return {package: _hashes(found, places[package]) for package, found in files.items()}


def stage1_sources() -> FileHashes:
    """The same for what makes a Stage-1 file, within sar_eval."""
    place = folders()[PACKAGE]
    return _hashes(followed(STAGE1, place), place)


def followed(roots: Iterable[str], folder: Path, besides: Iterable[Path] = ()) -> list[Path]:
    """Files of the sar_eval in this folder that the roots are or import; one that is not there is an error."""
    left_out = {folder / "__init__.py", *(_found(name, folder, "the list of what only tells") for name in TELLING)}
    waiting = [*besides, *(file for root in roots for file in _tree(_found(root, folder, "a flight")))]
    flying: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in flying | left_out:
            flying.add(file)
            waiting += _imported(file, folder)
    return sorted(flying)


def _tree(file: Path) -> Iterable[Path]:
    """All modules of a package, or the one module that it is."""
    return file.parent.rglob("*.py") if file.name == "__init__.py" else [file]


def _imported(file: Path, folder: Path) -> Iterator[Path]:
    """Files of sar_eval that a source imports, and the packages these lie in."""
    reader = f"{file.parent.name}/{file.name}"
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise ContractError(f"{file}: cannot be read as Python ({error})") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _chain(alias.name, folder, reader)
        elif isinstance(node, ast.ImportFrom):
            if node.module is None or node.level:
                raise ContractError(f"{file}: imports relatively; write it in full, so that what flies can be found")
            yield from _chain(node.module, folder, reader)
            names = (_find(f"{node.module}.{alias.name}", folder) for alias in node.names)
            yield from (found for found in names if found is not None)


def _chain(name: str, folder: Path, reader: str) -> Iterator[Path]:
    """The file of a module of sar_eval and of every package around it; none where it is somebody else's."""
    parts = name.split(".")
    if parts[0] == PACKAGE:
        yield from (_found(".".join(parts[:k]), folder, reader) for k in range(2, len(parts) + 1))


def _find(name: str, folder: Path) -> Path | None:
    """a/b.py or a/b/__init__.py of ``sar_eval.a.b``."""
    package, *parts = name.split(".")
    if package != PACKAGE or not parts:
        return None
    place = folder.joinpath(*parts)
    return next((f for f in (place.with_name(f"{place.name}.py"), place / "__init__.py") if f.is_file()), None)


def _found(name: str, folder: Path, reader: str) -> Path:
    found = _find(name, folder)
    if found is None:
        raise ContractError(f"module {name}: is not in {folder}, but {reader} needs it")
    return found


def _hashes(files: Iterable[Path], folder: Path) -> FileHashes:
    """By path; 64 bits of SHA-256 tell any two versions of a file apart."""
    return {f.relative_to(folder).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest()[:16] for f in files}


def _stamps() -> tuple[tuple[str, int, int], ...]:
    """Path, time of change and size of every source there is: cheap enough to ask for after every mission."""
    files = sorted(file for place in folders().values() for file in place.rglob("*.py"))
    return tuple((str(file), stat.st_mtime_ns, stat.st_size) for file in files for stat in (file.stat(),))


@lru_cache(maxsize=1)
def _sources(stamps: tuple[tuple[str, int, int], ...]) -> dict[str, FileHashes]:
    return sources(folders())


@cache
def core_type() -> str:
    """The type of CPU whose kernels numpy's OpenBLAS has chosen, by itself or by OPENBLAS_CORETYPE.

    Last digits depend on it, and on nothing else of a CPU that we know of; where the library does not tell, what the
    variable asks for is all there is to compare.
    """
    np.linalg.norm(np.ones(2))
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        maps = []
    for library in sorted({line.split(maxsplit=5)[5] for line in maps if "openblas" in line}):
        for name in _CORE_NAMES:
            tell = getattr(ctypes.CDLL(library), name, None)
            if tell is not None:
                tell.restype = ctypes.c_char_p
                return str(tell().decode())
    return os.environ.get("OPENBLAS_CORETYPE", "auto")
