"""How kernels are compiled: one decorator, and a cache that can never serve yesterday's code.

numba's own cache looks only at the file a function stands in; a change in a function it calls from another file would
go unnoticed. So our cache folder carries a fingerprint of every file the function's package may call.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

_CALLS = {
    "sar_core": ("sar_core",),
    "sar_sim": ("sar_core", "sar_sim"),
    "sar_swarm": ("sar_core", "sar_swarm"),
    "sar_analysis": ("sar_core", "sar_analysis"),
    "sar_eval": ("sar_core", "sar_sim", "sar_swarm", "sar_eval"),
}
_BASE = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sar_eval"
)


@cache
def fingerprint(package: str) -> str:
    """A hash of numba's version and of every source file that kernels of this package may be made of."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name in _CALLS[package]:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        folder = Path(spec.origin).parent
        for file in sorted(folder.rglob("*.py")):
            body = file.read_bytes()
            digest.update(f"{file.relative_to(folder).as_posix()} {len(body)}\n".encode() + body)
    return digest.hexdigest()[:16]


def _compile(function: F, **options: Any) -> F:
    package = function.__module__.partition(".")[0]
    if package not in _CALLS:
        return numba.njit(error_model="numpy", **options)(function)  # type: ignore[no-any-return]
    numba.config.CACHE_DIR = os.path.join(_BASE, f"{package}-{fingerprint(package)}")  # type: ignore[attr-defined]
    return numba.njit(cache=True, error_model="numpy", **options)(function)  # type: ignore[no-any-return]


def compiled(function: F) -> F:
    """Compile on first call; division by zero gives inf or nan as in numpy; bits do not depend on the process."""
    return _compile(function)


def inlined(function: F) -> F:
    """The same for a small function of an inner loop: its body is copied to where it is called."""
    return _compile(function, forceinline=True)
