"""Starts one autopilot process per vehicle, each in a folder of its own, and ends them."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sar_core.errors import MissingDependencyError
from sar_core.geodesy import Origin
from sar_eval.simulator import SpoiltError

GRACE_S = 3.0
LOG = "autopilot.log"
_LOG_TAIL = 3
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


def find_px4() -> Path:
    """The px4 binary: PX4_BIN, else px4 on PATH."""
    wanted = os.environ.get("PX4_BIN") or "px4"
    found = shutil.which(wanted)
    if found is None:
        named = f"PX4_BIN={wanted} is not an executable" if os.environ.get("PX4_BIN") else "px4 is not on PATH"
        raise MissingDependencyError(
            f"{named}: install PX4's px4 package, or set PX4_BIN to a px4 binary; docs/px4.md says how"
        )
    return Path(found).resolve()


def px4_command(binary: Path, instance: int, folder: Path) -> list[str]:
    """PX4 keeps its start-up scripts beside its binary; where it does not, it is left to find them itself."""
    scripts = binary.parent.parent / "etc"
    where = ["-w", str(folder), str(scripts)] if (scripts / "init.d-posix" / "rcS").is_file() else []
    return [str(binary), "-d", "-i", str(instance), *where]


def embedded_command(instance: int) -> list[str]:
    """Our own MAVLink vehicle."""
    return [sys.executable, "-m", "sar_eval", "sitl", "--vehicles", "1", "--instance", str(instance)]


def environment(home: Origin, parameters: Mapping[str, str], speed: float) -> dict[str, str]:
    """What tells an autopilot where it stands and how it is set."""
    return {
        "PX4_SIM_MODEL": SIH_MODEL,
        "PX4_SIM_SPEED_FACTOR": f"{speed:g}",
        "PX4_HOME_LAT": f"{home.latitude:.9f}",
        "PX4_HOME_LON": f"{home.longitude:.9f}",
        "PX4_HOME_ALT": f"{home.altitude_m:.3f}",
        **{f"PX4_PARAM_{name}": value for name, value in parameters.items()},
    }


class Processes:
    """Vehicles as child processes; ``binary`` None flies our own."""

    def __init__(self, binary: Path | None) -> None:
        self._binary = binary
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
            command = embedded_command(instance)
            if self._binary is not None:
                command = px4_command(self._binary, instance, folder)
            with (folder / LOG).open("wb") as log:
                self._children.append(
                    subprocess.Popen(
                        command,
                        cwd=folder,
                        env={**os.environ, **self._home(folder), **environment(home, parameters, speed)},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        preexec_fn=_end_with_parent,
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
                raise SpoiltError(
                    "vehicle_lost", f"vehicle {instance + 1} ended with {code}: {self._last_words(instance)}"
                )

    def _last_words(self, instance: int) -> str:
        assert self._folder is not None
        lines = (self._folder / str(instance) / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        return " | ".join(line.strip() for line in lines[-_LOG_TAIL:]) or "it said nothing"

    def stop(self) -> None:
        """Ask them to end, then end them; their folders go too."""
        for child in self._children:
            _signal(child, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for child in self._children:
            try:
                child.wait(max(deadline - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                _signal(child, signal.SIGKILL)
                child.wait()
        self._children.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _end_with_parent() -> None:
    """In the child: whoever kills the evaluation outright leaves no vehicle on its ports."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    """To the whole group: PX4's start-up script has children too."""
    if child.poll() is None:
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            return
