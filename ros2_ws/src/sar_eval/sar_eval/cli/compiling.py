"""The verb that compiles, so that nothing has to while something flies."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from sar_core.errors import RunError
from sar_eval.cli.console import note, say


def compile_() -> None:
    """Compile every kernel that flights and Stage 1 call, once per machine and version; later it only looks.

    Example: sar-eval compile

    Takes minutes on a new machine. Every verb compiles what it needs by itself; this one is for a launch, an image or a
    cluster's workers, which shall find it done. Kernels lie in ~/.cache/sar_eval, or below NUMBA_CACHE_DIR if that is
    set, and may be deleted at any time.
    """
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    began = time.perf_counter()
    compiled = []

    def tell(number: int, of: int, what: str) -> None:
        compiled.append(what)
        note(f"compiling {number} of {of}: {what} ({time.perf_counter() - began:.0f} s so far)")

    note("kernels: looking which are compiled; on a new machine this takes minutes, later seconds")
    from sar_eval.stage1.kernels import compile_everything

    count = compile_everything(tell)
    done = f"{len(compiled)} of {count} groups of kernels compiled" if compiled else f"all {count} groups were there"
    say(f"{done}, {time.perf_counter() - began:.0f} s")


def _leave(*_: Any) -> None:
    """At once: the cache only ever gets whole files, and numba would tell of the interruption at length."""
    print("error: interrupted", file=sys.stderr, flush=True)
    os._exit(RunError.exit_code)
