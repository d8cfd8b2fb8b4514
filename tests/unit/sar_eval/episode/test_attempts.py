"""Spoilt flights are flown again, as often as said, and what was spoilt is told with the last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sar_core.errors import InputError
from sar_eval.bag.writer import partial_of
from sar_eval.episode.attempts import Attempts, repeat
from sar_eval.episode.record import Record

SOUND = Record({"invalid_reason": None, "flight_time_s": 300.0, "collisions": 0}, {"rtf": 50.0})


def spoilt(detail: str = "no heartbeat", collisions: int = 0, **run: Any) -> Record:
    result = {"invalid_reason": "not_ready", "flight_time_s": 7.0, "collisions": collisions}
    return Record(result, {"invalid_detail": detail, **run})


def flights(*records: Record) -> Iterator[Record]:
    return iter(records)


def test_a_sound_flight_is_flown_once() -> None:
    record = repeat(flights(SOUND).__next__, None)
    assert (record.result, record.run) == (SOUND.result, {"rtf": 50.0, "spoilt_attempts": []})


def test_it_is_flown_until_one_is_sound_and_every_other_is_told() -> None:
    told: list[str] = []
    coming = flights(spoilt("a"), spoilt("b", collisions=2), SOUND, SOUND)
    record = repeat(coming.__next__, None, tell=told.append)
    assert record.result == SOUND.result and len(list(coming)) == 1
    assert [(s["detail"], s["collisions"]) for s in record.run["spoilt_attempts"]] == [("a", 0), ("b", 2)]
    assert [text.partition(" (")[0] for text in told] == ["attempt 1 was spoilt", "attempt 2 was spoilt"]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_no_more_often_than_said(retries: int) -> None:
    coming = flights(*[spoilt()] * 9)
    record = repeat(coming.__next__, None, retries=retries)
    assert record.result["invalid_reason"] == "not_ready"
    assert len(record.run["spoilt_attempts"]) == retries + 1 == 9 - len(list(coming))


def test_what_no_attempt_can_mend_is_not_tried_again() -> None:
    record = repeat(flights(spoilt(final=True)).__next__, None)
    assert len(record.run["spoilt_attempts"]) == 1


def test_who_stops_a_flight_has_not_spoilt_it() -> None:
    record = repeat(flights(spoilt()).__next__, None, stop=lambda: "interrupted")
    assert record.run["spoilt_attempts"] == []


def test_an_episode_that_is_invalid_by_itself_is_an_outcome() -> None:
    """A take-off that took too long has no detail: nobody's simulator failed."""
    record = repeat(flights(Record({"invalid_reason": "takeoff_timeout"}, {})).__next__, None)
    assert record.result["invalid_reason"] == "takeoff_timeout"


def test_a_spoilt_flight_leaves_no_bag_in_the_way_of_the_next(tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    for folder in (bag, partial_of(bag)):
        folder.mkdir()
    attempts = Attempts(bag, retries=1)
    assert attempts.again(spoilt(), stopped=False)
    assert list(tmp_path.iterdir()) == []
    bag.mkdir()
    assert not attempts.again(spoilt(), stopped=False)
    assert bag.exists(), "the last attempt's bag stays"


def test_nothing_is_flown_over_a_bag_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with pytest.raises(InputError, match="exists already"):
        repeat(lambda: pytest.fail("flown"), tmp_path / "bag")
