"""The command as users have it: own process, real exit code, real output."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.executable).with_name("sar-eval")
TIMEOUT_S = 300.0

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def plain_environment() -> dict[str, str]:
    """No terminal, no colours, no width but the default: what a log file sees."""
    noisy = ("COLUMNS", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE")
    return {key: value for key, value in os.environ.items() if key not in noisy}


@pytest.fixture(scope="session")
def sar_eval() -> Run:
    """Run the installed command to its end."""
    if not COMMAND.is_file():
        pytest.fail(f"{COMMAND} is missing: install the project (pip install -e .) into this environment")

    def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        environment = plain_environment() | options.pop("env", {})
        command = [COMMAND, *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, env=environment, **options
        )

    return run


@pytest.fixture(scope="session")
def warm(sar_eval: Run) -> None:
    """Compile the simulator once, so that later processes find it in the cache and take off at once."""
    done = sar_eval("run", "--no-bag", "--drones", "2", "--duration-s", "1", "--json")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def launch() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command, or a Python script around it, and leave it running; whatever is left at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path, script: str | None = None) -> subprocess.Popen[str]:
        head = [str(COMMAND)] if script is None else [sys.executable, "-c", script]
        process = subprocess.Popen(
            [*head, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=plain_environment(),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[str], what: str) -> None:
    """Look again and again until something has happened; fail if the process ends or time runs out before."""
    give_up = time.monotonic() + TIMEOUT_S
    while not happened():
        assert process.poll() is None, f"the process ended before {what}: {process.communicate()}"
        assert time.monotonic() < give_up, f"waited {TIMEOUT_S} s for {what}"
        time.sleep(0.002)


@pytest.fixture(scope="session")
def wait_for() -> Callable[[Callable[[], bool], subprocess.Popen[str], str], None]:
    return wait_until
