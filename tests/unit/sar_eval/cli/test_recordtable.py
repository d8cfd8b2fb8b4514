"""A record as people see it at the end of a flight."""

from __future__ import annotations

import json

import pytest
import typer

from sar_core.errors import RunError
from sar_eval.cli.recordtable import conclude
from sar_eval.episode.flight import fly_episode
from sar_eval.episode.invalid import invalid_record
from sar_eval.episode.record import Record
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare


@pytest.fixture(scope="module")
def flown() -> Record:
    record = fly_episode(prepare(Scenario(world="open_field", drones=2, duration_s=2.0, altitude_m=10.0), 0, 0), None)
    record.run["compile_s"] = 0.0
    return record


@pytest.mark.parametrize("as_json", [False, True])
def test_a_flight_that_never_began_is_told_of_too(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """It has no pace and no bag."""
    record = invalid_record(prepare(Scenario(drones=2), 0, 0, "sih"), "not_ready")
    record.run["compile_s"] = 0.0
    with pytest.raises(typer.Exit) as left:
        conclude(record, as_json)
    told = capsys.readouterr()
    assert left.value.exit_code == RunError.exit_code
    assert told.err.strip() == "the episode is INVALID (not_ready)"
    if as_json:
        assert json.loads(told.out)["result"]["invalid_reason"] == "not_ready"
    else:
        assert "INVALID (not_ready)" in told.out and "bag: not recorded" in told.out


@pytest.mark.parametrize(
    ("tier", "kept", "warned"), [("gazebo", 0.76, True), ("gazebo", 0.95, False), ("sih", 0.76, False)]
)
def test_a_host_too_slow_for_gazebo_is_told(
    tier: str, kept: float, warned: bool, flown: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    conclude(Record({**flown.result, "tier": tier}, {**flown.run, "autopilot": {"slowest_rtf_share": kept}}), False)
    assert ("kept 76% of the asked pace" in capsys.readouterr().err) == warned
