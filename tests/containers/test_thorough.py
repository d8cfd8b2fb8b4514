"""What people do to containers beside letting them run: again, as someone else, stopped, killed, over TLS.

`make containers` runs these too; make test leaves them out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sar_eval.bag.check import check_bag
from sar_eval.campaign.ledger import LEDGER, read_ledger
from tests.containers.engine import SHORT, Stack, call, require, until

require()

pytestmark = [pytest.mark.containers, pytest.mark.alone, pytest.mark.slow, pytest.mark.thorough]

LEAVE_S = 25.0
"""A vehicle whose evaluator was killed notices after ten seconds, and its PX4 has three to leave in."""


def test_up_given_again_flies_nothing_and_says_the_same(stack: Callable[..., Stack]) -> None:
    twice = stack(**SHORT)
    first = twice.compose("embedded", "up", "--exit-code-from", "embedded")
    assert first.returncode == 0, first.stdout + first.stderr
    report = twice.runs / "embedded" / "evaluation" / "report"
    before = {path.name: path.read_bytes() for path in report.iterdir() if path.is_file()}
    began = time.monotonic()
    again = twice.compose("embedded", "up", "--exit-code-from", "embedded")
    assert again.returncode == 0 and "6 of 6 missions are flown, 0 to fly" in again.stdout + again.stderr
    print(f"the second up took {time.monotonic() - began:.0f} s")
    assert {path.name: path.read_bytes() for path in report.iterdir() if path.is_file()} == before


def test_another_user_comes_after_the_first(standin: Callable[..., Stack]) -> None:
    first = standin(SAR_TIER="sitl")
    assert first.evaluate("sih").returncode == 0
    first.down()
    second = standin(SAR_TIER="sitl", SAR_UID="1001", SAR_GID="1001")
    done = second.evaluate("sih")
    assert done.returncode == 1, "the results are the first user's"
    hint = "SAR_UID=$(id -u) SAR_GID=$(id -g) docker compose up"
    assert hint in done.stdout + done.stderr
    for path in (second.runs, *second.runs.rglob("*")):
        os.chown(path, 1001, 1001)
    done = second.evaluate("sih")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 missions are flown, 0 to fly" in done.stdout + done.stderr


def test_a_stop_in_flight_ends_cleanly_and_the_next_up_goes_on(standin: Callable[..., Stack]) -> None:
    flown = standin(SAR_TIER="sitl", SAR_SEEDS="1,3")
    campaign = flown.runs / "sih" / "campaign-village"
    flying = flown.begin("sih", "up", "--exit-code-from", "sih")
    until(lambda: (campaign / LEDGER).exists(), "the first mission", flying)
    until(lambda: "s003-e000: " in flown.said, "the second one's search", flying)
    began = time.monotonic()
    assert flown.compose("sih", "stop").returncode == 0
    took_s = time.monotonic() - began
    assert flying.wait(120) != 0
    print(f"stopped within {took_s:.1f} s")
    assert took_s < 60.0, "nobody had to be killed"
    assert "go on with: docker compose up" in flown.said
    (record,) = read_ledger(campaign / LEDGER).values()
    assert check_bag(campaign / str(record.run["bag"])).ok, "what was flown is whole"
    flown.down()
    done = flown.evaluate("sih")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(read_ledger(campaign / LEDGER)) == 2
    assert all(check_bag(bag).ok for bag in sorted((campaign / "bags").iterdir()))


def test_vehicles_leave_when_their_evaluator_is_killed(standin: Callable[..., Stack]) -> None:
    flown = standin(SAR_TIER="sitl")
    flying = flown.begin("sih", "up")
    until(lambda: "searched, coverage" in flown.said, "a search that begins", flying)
    (evaluator,) = flown.containers("sih")
    assert len(flown.containers()) == 5
    assert call("docker", "kill", "--signal", "KILL", evaluator).returncode == 0
    killed = time.monotonic()
    until(lambda: not flown.containers(), "vehicles that leave")
    left_s = time.monotonic() - killed
    print(f"the last vehicle left {left_s:.0f} s after the evaluator was killed")
    assert left_s < LEAVE_S or os.getloadavg()[0] > 4.0
    flying.wait(120)
    done = flown.evaluate("sih")
    assert done.returncode == 0, "nothing of it is in the way: " + done.stdout + done.stderr


def test_a_failure_of_the_default_is_told_from_its_exit_code(standin: Callable[..., Stack]) -> None:
    done = standin().compose("sih", "up", "--exit-code-from", "sih")
    assert done.returncode == 3 and "wrong_autopilot" in done.stdout + done.stderr


def test_a_cluster_speaks_tls_if_asked(stack: Callable[..., Stack], tmp_path: Path) -> None:
    keys = tmp_path / "tls"
    keys.mkdir()
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=sar-eval -keyout key.pem -out cert.pem"
    assert call("openssl", *made.split(), cwd=keys).returncode == 0
    (keys / "ca.pem").write_bytes((keys / "cert.pem").read_bytes())
    (keys / "key.pem").chmod(0o644)
    settings = {**SHORT, "SAR_SEEDS": "1", "SAR_PROTOCOL": "tls", "SAR_TLS": str(keys)}
    done = stack(**settings).evaluate("cluster")
    assert done.returncode == 0, done.stdout + done.stderr
    without = stack(**{**settings, "SAR_TLS": str(tmp_path / "none")})
    (tmp_path / "none").mkdir()
    without.down()
    assert without.evaluate("cluster").returncode != 0
