"""Where every process of ours begins: a stop that comes while Python still imports is one line, not a traceback.

Who starts a process with SIGINT ignored, as launch files do, has it ended by SIGTERM alone; a terminal's Ctrl-C, which
reaches every process, does not disturb it then.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

STOPPED = 3
"""Exit code of what was interrupted, as sar_core.errors.RunError has it."""
LEAVE_S = 10
"""Wall time to leave in; then SIGALRM ends the process, wherever it hangs."""


def _leave(*_: Any) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(STOPPED)


def hear(handler: Callable[..., Any]) -> None:
    """Handle both stops so, SIGINT only if it is not ignored."""
    signal.signal(signal.SIGTERM, handler)
    if not _spared():
        signal.signal(signal.SIGINT, handler)


def _spared() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


class Interrupt:
    """As Ctrl-C, once; what comes after the first finds the process on its way out, which it has LEAVE_S for."""

    heard = False

    def __call__(self, *_: Any) -> None:
        if not self.heard:
            self.heard = True
            signal.alarm(LEAVE_S)
            raise KeyboardInterrupt


interrupt = Interrupt()


def _begin(module: str, function: str, listen: Callable[[], None]) -> Any:
    hear(_leave)
    run = getattr(importlib.import_module(module), function)
    try:
        listen()
        return run()
    except KeyboardInterrupt:
        return _leave()


def main() -> Any:
    """``sar-eval``."""

    def listen() -> None:
        if _spared():
            signal.signal(signal.SIGTERM, interrupt)
        else:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)

    return _begin("sar_eval.cli.app", "main", listen)


def node() -> Any:
    """A node, or all of them composed: which, says the name this process was started by."""
    name = os.path.basename(sys.argv[0]).removesuffix("_nodes").removesuffix("_node")
    return _begin("sar_eval.ros.main", name, lambda: hear(interrupt))


class Stopper:
    """Remembers that the user or the system asked us to stop, so that the running episode can end properly."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def __call__(self) -> str | None:
        return self.reason

    def hear(self, *_: Any) -> None:
        """A signal came."""
        self.reason = "interrupted"

    def listen(self) -> None:
        """From here on SIGINT and SIGTERM, however many, end the episode within a simulated second, not the process."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.hear)
