"""Health probes of containers: ``probe.py http PORT`` and ``probe.py progress SECONDS FOLDER...``. Exit 0 is healthy.

A flight writes to its folder at least once a simulated second, and compiling to that of compiled kernels every now and
then; so folders that all stand still are an evaluation that hangs.
"""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

TIMEOUT_S = 3.0


def http(port: int) -> str | None:
    """What is wrong with a dask process, None if it says it is well."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=TIMEOUT_S) as answer:
            text = answer.read(100).decode(errors="replace").strip()
    except (OSError, urllib.error.URLError) as error:
        return f"port {port} does not answer ({error})"
    return None if text == "ok" else f"port {port} says {text!r}, not 'ok'"


def progress(seconds: float, folders: Sequence[Path]) -> str | None:
    """What is wrong with an evaluation, None if something below one of its folders changed lately."""
    changed = [stamp for folder in folders for path in (folder, *folder.rglob("*")) if (stamp := _changed(path))]
    where = ", ".join(map(str, folders))
    if not changed:
        return f"{where}: not there yet"
    still_s = time.time() - max(changed)
    return None if still_s <= seconds else f"nothing below {where} changed for {still_s:.0f} s, allowed are {seconds:g}"


def _changed(path: Path) -> float | None:
    """When a file was written last; a flight may take it away while one looks."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return None


def main(words: Sequence[str]) -> int:
    match words:
        case ["http", port] if port.isdecimal():
            wrong = http(int(port))
        case ["progress", seconds, first, *others] if seconds.isdecimal():
            wrong = progress(float(seconds), [Path(first), *map(Path, others)])
        case _:
            wrong = f"asked for {' '.join(words)!r}; allowed are: http PORT, progress SECONDS FOLDER..."
    if wrong:
        print(f"unhealthy: {wrong}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
