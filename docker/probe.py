"""Health probes of the containers: ``probe.py http PORT`` and ``probe.py progress FOLDER SECONDS``. Exit 0 is healthy.

A flight writes to its folder at least once a simulated second, so a folder that stands still is a flight that hangs.
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


def progress(folder: Path, seconds: float) -> str | None:
    """What is wrong with a flight, None if something below its folder changed lately."""
    if not folder.is_dir():
        return f"{folder} is not there yet"
    changed = max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))
    still_s = time.time() - changed
    return (
        None if still_s <= seconds else f"nothing below {folder} changed for {still_s:.0f} s, allowed are {seconds:g}"
    )


def main(words: Sequence[str]) -> int:
    match words:
        case ["http", port] if port.isdecimal():
            wrong = http(int(port))
        case ["progress", folder, seconds] if seconds.isdecimal():
            wrong = progress(Path(folder), float(seconds))
        case _:
            wrong = f"asked for {' '.join(words)!r}; allowed are: http PORT, progress FOLDER SECONDS"
    if wrong:
        print(f"unhealthy: {wrong}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
