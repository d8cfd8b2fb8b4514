"""The embedded autopilot as a MAVLink vehicle, in a process of its own, before clients that know nothing of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sar_eval.cli import app as cli
from sar_eval.px4.mavlink import VEHICLE_PORT
from tests.integration import px4rules
from tests.integration.conftest import COMMAND, plain_environment

INSTANCE = 5
"""Away from the ports that a PX4 of this machine would have."""
PORT = 14540 + INSTANCE
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "mavsdk_flight.py"
HALF_A_CORE = 0.5

Start = Callable[..., "subprocess.Popen[str]"]


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return sum(int(ticks) for ticks in fields[11:13]) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def sitl() -> Iterator[Start]:
    """Start the command and wait until it says that it is ready; in the end it must go when asked, in peace."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(COMMAND), "sitl", "--instance", str(INSTANCE), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=plain_environment() | environment,
        )
        started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if line == "ready\n":
                return process
        pytest.fail(f"ended before it was ready: {process.communicate()}")

    yield start
    for process in started:
        process.terminate()
        _, complaint = process.communicate(timeout=20)
        assert process.returncode == 0, complaint


@pytest.fixture
def client() -> Iterator[Callable[[], px4rules.Client]]:
    opened: list[px4rules.Client] = []

    def connect() -> px4rules.Client:
        opened.append(px4rules.Client(PORT))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def test_mavsdk_flies_four(sitl: Start) -> None:
    """The example of the docs, which a real PX4 passes too: arm, take off, OFFBOARD, stream loss, land, disarm."""
    process = sitl("--vehicles", "4", "--speed", "2")
    used, began = cpu_seconds(process), time.monotonic()
    addresses = [f"udpin://127.0.0.1:{PORT + i}" for i in range(4)]
    done = subprocess.run(
        [sys.executable, EXAMPLE, *addresses], capture_output=True, text=True, check=False, timeout=150
    )
    share = (cpu_seconds(process) - used) / (time.monotonic() - began)
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, (outcomes, done.stderr)
    assert [outcome["system"] for outcome in outcomes] == [INSTANCE + 1 + i for i in range(4)]
    assert all(outcome["ok"] and outcome["north_m"] >= 4.0 for outcome in outcomes), outcomes
    assert "sar_eval embedded autopilot, not PX4" in done.stdout + done.stderr
    assert share < HALF_A_CORE


def test_px4s_rules_hold(sitl: Start, client: Callable[[], px4rules.Client]) -> None:
    sitl("--speed", "2")
    asked = client()
    assert px4rules.wrong({**px4rules.on_the_ground(asked), **px4rules.in_the_air(asked)}) == {}


def test_parameters_come_from_the_environment_and_hooks_work(
    sitl: Start, client: Callable[[], px4rules.Client]
) -> None:
    sitl(PX4_PARAM_COM_OBL_RC_ACT="4", PX4_PARAM_SAR_REFUSE_ARM="1", PX4_PARAM_SDLOG_MODE="-1")
    asked = client()
    assert asked.parameter("COM_OBL_RC_ACT") == 4
    assert asked.command(400, 1) == [px4rules.REJECTED]
    assert any("SAR_REFUSE_ARM" in text for text in asked.texts)


def test_streams_come_at_the_rate_asked_for_in_vehicle_time(sitl: Start, client: Callable[[], px4rules.Client]) -> None:
    """At twice real time 20 Hz of vehicle time are counted by the vehicle's own stamps."""
    sitl("--speed", "2")
    asked = client()
    number = px4rules.mavutil.mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED
    assert asked.command(511, number, 50_000) == [px4rules.ACCEPTED]
    asked.wait(0.5)
    stamps: list[int] = []

    def keep(message) -> bool:
        if message.get_type() == "LOCAL_POSITION_NED":
            stamps.append(message.time_boot_ms)
        return len(stamps) == 61

    assert asked.wait(10.0, keep) is not None
    assert (stamps[-1] - stamps[0]) / 60 == pytest.approx(50.0, rel=0.02)


def test_half_of_the_datagrams_may_get_lost(sitl: Start, client: Callable[[], px4rules.Client]) -> None:
    sitl(PX4_PARAM_SAR_DROP="0.5")
    asked = client()
    tries = 0
    while px4rules.ACCEPTED not in asked.command(400, 1):
        tries += 1
        assert tries < 30
    assert asked.heartbeat(10.0, lambda message: bool(message.base_mode & px4rules.ARMED))


def test_garbage_does_not_stop_it(sitl: Start, client: Callable[[], px4rules.Client]) -> None:
    sitl()
    asked = client()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for junk in (b"", b"\xfd", b"\xfd\xff" * 600, bytes(range(256)), b"\xfe" * 300):
            stranger.sendto(junk, ("127.0.0.1", VEHICLE_PORT + INSTANCE))
    assert asked.command(512, 148) == [px4rules.ACCEPTED]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ends_in_peace_when_asked(sitl: Start, number: int) -> None:
    process = sitl()
    began = time.monotonic()
    process.send_signal(number)
    assert process.wait(20) == 0
    assert time.monotonic() - began < 3.0


def test_a_taken_port_is_named(sar_eval) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", VEHICLE_PORT + INSTANCE + 1))
        done = sar_eval("sitl", "--vehicles", "2", "--instance", str(INSTANCE))
    assert done.returncode == 3
    assert done.stderr.startswith(f"error: UDP port {VEHICLE_PORT + INSTANCE + 1} is taken")
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "words"),
    [
        (("--vehicles", "0"), {}, 1, ("--vehicles 0", "1 or more")),
        (("--vehicles", "8", "--instance", "5"), {}, 1, ("--instance 5", "0 to 9")),
        (("--instance", "-1"), {}, 1, ("--instance -1", "0 to 9")),
        (("--speed", "0"), {}, 1, ("--speed 0", "more than 0")),
        (("--speed", "nan"), {}, 1, ("--speed nan", "up to 100")),
        (("--seed", "-1"), {}, 1, ("--seed -1", "0 or more")),
        (("--vehicle", "zeppelin"), {}, 1, ("'zeppelin'", "sihsim_quadx")),
        (("--world", "atlantis"), {}, 1, ("atlantis",)),
        ((), {"PX4_SIM_SPEED_FACTOR": "fast"}, 1, ("PX4_SIM_SPEED_FACTOR", "'fast'", "0 to 100")),
        ((), {"PX4_HOME_LAT": "47.4"}, 1, ("PX4_HOME_LON", "set both")),
        ((), {"PX4_PARAM_COM_OF_LOSS_T": "never"}, 1, ("PX4_PARAM_COM_OF_LOSS_T", "'never'")),
        ((), {"PX4_PARAM_MPC_TILTMAX_AIR": "120"}, 1, ("MPC_TILTMAX_AIR", "120", "0 to 89")),
        ((), {"PX4_PARAM_SAR_MUTED": "1"}, 1, ("PX4_PARAM_SAR_MUTED", "SAR_MUTE")),
    ],
)
def test_what_is_wrong_is_named(
    monkeypatch, capsys, arguments: tuple[str, ...], environment: dict[str, str], code: int, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sar-eval", "sitl", *arguments])
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as end:
        cli.main()
    complaint = capsys.readouterr().err
    assert len(complaint.splitlines()) == 1, complaint
    assert [word for word in words if word not in complaint] == [], complaint
    assert end.value.code == code


def test_without_pymavlink_it_says_what_is_missing(sar_eval, tmp_path) -> None:
    (tmp_path / "pymavlink").mkdir()
    (tmp_path / "pymavlink" / "__init__.py").write_text("raise ImportError('hidden')\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = sar_eval("sitl", env={"PYTHONPATH": path})
    assert done.returncode == 5
    assert "pymavlink" in done.stderr and "sar-eval[px4]" in done.stderr
