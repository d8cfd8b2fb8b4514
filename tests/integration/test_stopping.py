"""A stop is heard at any moment, also while Python imports and kernels compile: a line, an exit code, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

WAIT_S = 120.0
PROMPT_S = 15.0


def begun(*words: str, spared: bool = False, **environment: str) -> subprocess.Popen[str]:
    """A command; ``spared`` as launch files start it, with SIGINT ignored."""
    before = ["env", "--ignore-signal=INT"] if spared else ["env", "--default-signal=INT"]
    command = [*before, sys.executable, "-u", "-m", "sar_eval", *words]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )


def wait_until(there: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    give_up = time.monotonic() + WAIT_S
    while not there():
        assert process.poll() is None and time.monotonic() < give_up
        time.sleep(0.001)


def hears(process: subprocess.Popen[str], number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(caught >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_it_imports(number: int) -> None:
    process = begun("doctor")
    wait_until(lambda: hears(process, signal.SIGTERM), process)
    os.kill(process.pid, number)
    assert process.communicate(timeout=WAIT_S)[1] == "error: interrupted\n"
    assert process.returncode == 3


def test_while_it_compiles(tmp_path: Path) -> None:
    process = begun("compile", NUMBA_CACHE_DIR=str(tmp_path))
    assert process.stderr is not None
    told = [process.stderr.readline(), process.stderr.readline()]
    assert "compiling 1 of 8: vehicles and wind" in told[1], told
    asked_s = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate(timeout=WAIT_S)[1] == "error: interrupted\n"
    assert process.returncode == 3
    assert time.monotonic() - asked_s < PROMPT_S


def test_as_launch_starts_it_a_terminals_stop_passes_by_and_sigterm_ends_it(tmp_path: Path) -> None:
    process = begun("run", "--duration-s", "600", "--no-bag", spared=True)
    wait_until(lambda: hears(process, signal.SIGTERM), process)
    os.kill(process.pid, signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    told = process.communicate(timeout=WAIT_S)[1]
    assert "interrupted" in told and "Traceback" not in told
    assert process.returncode == 3
