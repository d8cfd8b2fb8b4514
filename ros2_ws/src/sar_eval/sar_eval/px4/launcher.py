"""Starts one autopilot process per vehicle, each in a folder of its own, and ends them."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sar_core.geodesy import Origin
from sar_eval.backends.backend import SpoiltError

GRACE_S = 3.0
LOG = "autopilot.log"
_LOG_TAIL = 3
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
UNPRIVILEGED = "nobody"
"""Who flies when root starts it: as root PX4 takes real-time priority and starves everything else."""
_PR_SET_PDEATHSIG = 1
SIH_MODEL = "sihsim_quadx"


class Launcher(Protocol):
    """Brings vehicles to life and takes them away again."""

    def start(self, homes: Sequence[Origin], parameters: Mapping[str, str], speed: float) -> None: ...
    def check(self) -> None:
        """Raise SpoiltError if a vehicle has ended by itself."""

    def stop(self) -> None: ...


def px4_command(binary: Path, instance: int, folder: Path) -> list[str]:
    """PX4 keeps its start-up scripts beside its binary; where it does not, it is left to find them itself."""
    scripts = binary.parent.parent / "etc"
    where = ["-w", str(folder), str(scripts)] if (scripts / "init.d-posix" / "rcS").is_file() else []
    return [str(binary), "-d", "-i", str(instance), *where]


def embedded_command(instance: int) -> list[str]:
    """Our own MAVLink vehicle."""
    return [sys.executable, "-m", "sar_eval", "sitl", "--vehicles", "1", "--instance", str(instance)]


def settings(parameters: Mapping[str, str], speed: float) -> dict[str, str]:
    """What tells an autopilot how it is set."""
    return {
        "PX4_SIM_SPEED_FACTOR": f"{speed:g}",
        **{f"PX4_PARAM_{name}": value for name, value in parameters.items()},
    }


def own_simulator(home: Origin) -> dict[str, str]:
    """What tells an autopilot to simulate its vehicle itself, and where it stands."""
    return {
        "PX4_SIM_MODEL": SIH_MODEL,
        "PX4_HOME_LAT": f"{home.latitude:.9f}",
        "PX4_HOME_LON": f"{home.longitude:.9f}",
        "PX4_HOME_ALT": f"{home.altitude_m:.3f}",
    }


class Processes:
    """Vehicles as child processes; ``binary`` None flies our own.

    ``attached``: an environment per vehicle that ties it to a simulator outside it, instead of its own.
    """

    def __init__(self, binary: Path | None, attached: Sequence[Mapping[str, str]] = ()) -> None:
        self._binary = binary
        self._attached = attached
        self._folder: Path | None = None
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, homes: Sequence[Origin], parameters: Mapping[str, str], speed: float) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sar-eval-px4."))
        user = UNPRIVILEGED if self._binary is not None and os.geteuid() == 0 else None
        for instance, home in enumerate(homes):
            folder = self._folder / str(instance)
            folder.mkdir()
            if user is not None:
                self._folder.chmod(0o755)
                shutil.chown(folder, user)
            simulator = self._attached[instance] if self._attached else own_simulator(home)
            command = embedded_command(instance)
            if self._binary is not None:
                command = px4_command(self._binary, instance, folder)
            with (folder / LOG).open("wb") as log:
                self._children.append(
                    subprocess.Popen(
                        command,
                        cwd=folder,
                        env={**os.environ, **self._home(folder), **settings(parameters, speed), **simulator},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        preexec_fn=end_with_parent,
                        user=user,
                    )
                )

    def _home(self, folder: Path) -> dict[str, str]:
        """PX4 gets a home of its own; ours keeps the user's, where its compiled kernels lie."""
        return {} if self._binary is None else {"HOME": str(folder)}

    @property
    def pids(self) -> list[int]:
        return [child.pid for child in self._children]

    def check(self) -> None:
        for instance, child in enumerate(self._children):
            code = child.poll()
            if code is not None:
                assert self._folder is not None
                said = last_words(self._folder / str(instance) / LOG)
                raise SpoiltError("vehicle_lost", f"vehicle {instance + 1} ended with {code}: {said}")

    def stop(self) -> None:
        """Ask them to end, then end them; their folders go too."""
        end(self._children)
        self._children.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def read_log(log: Path) -> list[str]:
    """What a process said, without colours."""
    return _COLOURS.sub("", log.read_text(encoding="utf-8", errors="replace")).splitlines()


def last_words(log: Path) -> str:
    """What a process said last."""
    lines = read_log(log)
    return " | ".join(line.strip() for line in lines[-_LOG_TAIL:]) or "it said nothing"


def end_with_parent() -> None:
    """In the child: whoever kills the evaluation outright leaves no vehicle on its ports."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def end(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask processes to end, all at once, and end those that do not."""
    for child in children:
        _signal(child, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    for child in children:
        try:
            child.wait(max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            _signal(child, signal.SIGKILL)
            child.wait()


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    """To the whole group: PX4's start-up script has children too."""
    if child.poll() is None:
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            return
