"""Sensing through the real command: a victim is found by radio alone, and the record and the bag say how."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sar_core.errors import ContractError
from sar_eval.episode.flight import Flight, fly_episode
from sar_eval.scenario import prepare as preparing
from sar_eval.scenario.model import LinkConfig, Scenario
from sar_eval.scenario.prepare import prepare
from tests.conftest import Bag

SHORT = {"duration_s": 60.0, "drones": 4}


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    folder = tmp_path_factory.mktemp("sensing")
    record = fly_episode(prepare(Scenario(**SHORT), 9, 9), folder / "bag", csi=True)
    return record.as_dict(), Path(record.run["bag"])


def test_a_victim_in_the_open_is_found_close_to_where_it_lies(flown: tuple[dict, Path]) -> None:
    result = flown[0]["result"]
    assert result["valid"]
    assert result["detections"] == 1
    assert result["victims"][0]["final_error_m"] < 10.0
    assert 0.0 <= result["time_to_first_detection_s"] <= 60.0
    assert json.loads(json.dumps(result)) == result


def test_the_bag_holds_observations_gates_reports_and_raw_frames(
    flown: tuple[dict, Path], read_bag: Callable[[Path], Bag]
) -> None:
    bag = read_bag(flown[1])
    for topic in ("/uav_1/detection", "/uav_1/gate", "/swarm/reports", "/truth/devices"):
        assert bag.topic(topic), topic
    senders = Counter(address for batch in bag.topic("/uav_1/csi") for address in batch.decoded.address)
    (issue,) = flown[0]["result"]["issue_events"]
    assert senders.total() > 1000, "one message a tick holds the tick's frames, be there none"
    assert senders[issue["address"]] > 100


def test_without_victims_nothing_is_found(tmp_path: Path) -> None:
    result = fly_episode(prepare(Scenario(**SHORT, victim_absent=True), 9, 9), None).result
    assert result["victims"] == [] and result["detections"] == 0
    assert result["time_to_first_detection_s"] is None and result["localization_error_m"] is None


def test_the_same_seed_senses_the_same() -> None:
    episode = prepare(Scenario(duration_s=15.0, drones=2), 3, 3)
    assert fly_episode(episode, None).result == fly_episode(episode, None).result


def test_victims_and_decoys_depend_on_the_episode_and_not_on_the_seed() -> None:
    def places(seed: int, index: int) -> list[list[float]]:
        episode = prepare(Scenario(), seed, index)
        return [device.position_at(30.0).tolist() for device in episode.devices]

    assert places(1, 5) == places(2, 5)
    assert places(1, 5) != places(1, 6)


def test_a_drone_cut_off_from_the_link_knows_only_what_it_heard_itself() -> None:
    scenario = Scenario(duration_s=30.0, drones=2, link=LinkConfig(loss=1.0))
    flight = Flight(prepare(scenario, 1, 1), None)
    while not flight.score.done and flight.score.search_time_s < 20.0:
        flight.advance()
    assert flight.swarm.sensing is not None
    for index, centre in enumerate(flight.swarm.sensing.centres):
        heard_from = {int(row[0]) for track in centre.tracks for row in track.rows}
        assert heard_from == {index}


def test_a_calibration_of_another_link_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = preparing.calibration_path("near")
    monkeypatch.setattr(preparing, "calibration_path", lambda name: wrong)
    with pytest.raises(ContractError, match="near"):
        prepare(Scenario(), 0, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["run", "--sigma", "-0.1"], "sigma = -0.1"),
        (["run", "--kappa", "-1"], "kappa = -1"),
        (["run", "--radio", "morse"], "allowed: near, open_ground, optimistic, rubble"),
        (["run", "--victims", "99"], "victims = 99"),
        (["run", "--record", "video"], "allowed: csi"),
        (["missions", "--gate", "ajar"], "'on' or 'forced_open'"),
        (["missions", "--missions", "0"], "missions = 0"),
        (["missions", "--first-seed", "999999", "--missions", "2"], "belong to calibration"),
        (["sweep", "--per-cell", "0"], "per_cell = 0"),
        (["calibrate", "--radio", "morse"], "allowed: near, open_ground, optimistic, rubble"),
        (["reliability", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_bad_input_is_one_line_that_helps(
    options: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sar_eval.cli.app import main

    monkeypatch.setattr("sys.argv", ["sar-eval", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("error: ") and words in error
