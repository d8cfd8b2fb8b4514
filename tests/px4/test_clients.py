"""What any client meets on a real PX4, as on our own vehicle: the MAVSDK example of the docs, and PX4's rules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sar_eval.px4.binary import find_px4
from sar_eval.px4.launcher import Processes
from sar_eval.px4.mavlink import OFFBOARD_PORT, ORIGIN
from tests.integration import px4rules

pytestmark = [
    pytest.mark.px4,
    pytest.mark.alone,
    pytest.mark.skipif(
        shutil.which(os.environ.get("PX4_BIN") or "px4") is None,
        reason="no px4 binary here: put px4 on PATH or set PX4_BIN",
    ),
]
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "mavsdk_flight.py"
READY_S = 60.0


@pytest.fixture
def px4() -> Iterator[Callable[[int], None]]:
    """So many vehicles in PX4's own simulator."""
    launcher = Processes(find_px4())

    def start(vehicles: int) -> None:
        launcher.start([ORIGIN] * vehicles, {}, 1.0)

    yield start
    launcher.stop()


def test_mavsdk_flies_four(px4: Callable[[int], None]) -> None:
    px4(4)
    addresses = [f"udpin://127.0.0.1:{OFFBOARD_PORT + i}" for i in range(4)]
    done = subprocess.run(
        [sys.executable, EXAMPLE, *addresses], capture_output=True, text=True, check=False, timeout=300
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, (outcomes, done.stderr)
    assert [outcome["ok"] for outcome in outcomes] == [True] * 4


def test_px4s_rules_are_px4s(px4: Callable[[int], None]) -> None:
    px4(1)
    client = px4rules.Client(OFFBOARD_PORT)
    try:
        give_up = time.monotonic() + READY_S
        while client.heartbeat().system_status != px4rules.mavutil.mavlink.MAV_STATE_STANDBY:
            assert time.monotonic() < give_up, "PX4 did not get ready"
        assert px4rules.wrong({**px4rules.on_the_ground(client), **px4rules.in_the_air(client)}) == {}
    finally:
        client.close()
