"""An episode as its caller sees it: a record, a bag if wanted, and what is left when it does not end well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sar_eval.backends.backend import SimTick, SpoiltError
from sar_eval.backends.embedded import Simulator
from sar_eval.bag.check import check_bag
from sar_eval.bag.repair import repair_bag
from sar_eval.bag.writer import partial_of
from sar_eval.episode.flight import Flight, FlightProgress, fly_episode
from sar_eval.episode.record import Record
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_swarm.piloting.controller import Command, Order

Flown = tuple[Record, Path, list[FlightProgress]]


@pytest.fixture(scope="module")
def episode() -> Episode:
    return prepare(Scenario(world="open_field", drones=1, radio=None, duration_s=1.0, altitude_m=5.0), 0, 0)


@pytest.fixture(scope="module")
def flown(episode: Episode, tmp_path_factory: pytest.TempPathFactory) -> Flown:
    seen: list[FlightProgress] = []
    bag = tmp_path_factory.mktemp("flight") / "bag"
    return fly_episode(episode, bag, seen.append), bag, seen


class Failing(Simulator):
    """A world that fails after so many ticks."""

    def __init__(self, episode: Episode, ticks: int, error: BaseException) -> None:
        super().__init__(episode)
        self.left, self.error = ticks, error

    def step(self, commands: Sequence[Command], search_begin_s: float) -> SimTick:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return super().step(commands, search_begin_s)


def test_a_flight_ends_with_a_record_and_a_sound_bag(flown: Flown) -> None:
    record, bag, _ = flown
    assert (record.result["valid"], record.result["invalid_reason"], record.result["collisions"]) == (True, None, 0)
    checked = check_bag(bag)
    assert checked.findings == () and checked.messages == record.run["bag_messages"]
    assert record.run["bag"] == str(bag) and not partial_of(bag).exists()


def test_a_bag_changes_nothing_of_the_result(flown: Flown, episode: Episode) -> None:
    again = fly_episode(episode, None)
    assert again.result == flown[0].result
    assert (again.run["bag"], again.run["bag_bytes"]) == (None, None)


def test_who_watches_is_told_once_a_second(flown: Flown) -> None:
    record, _, seen = flown
    assert [round(p.time_s) for p in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].time_s <= record.result["flight_time_s"] < seen[-1].time_s + 1.1
    assert [p.coverage for p in seen] == sorted(p.coverage for p in seen)


def test_a_reason_to_stop_ends_it_invalid_with_a_sound_bag(episode: Episode, tmp_path: Path) -> None:
    asked = iter(["", None, "interrupted"])
    record = fly_episode(episode, tmp_path / "bag", stop=lambda: next(asked))
    assert (record.result["valid"], record.result["invalid_reason"]) == (False, "interrupted")
    assert record.result["flight_time_s"] == pytest.approx(3.0, abs=0.01)
    assert check_bag(tmp_path / "bag").ok and "invalid_detail" not in record.run


@pytest.mark.parametrize("ticks", [0, 19, 20, 30])
def test_a_world_that_fails_spoils_it_and_says_how(ticks: int, episode: Episode, tmp_path: Path) -> None:
    world = Failing(episode, ticks, SpoiltError("simulator_lost", "it went away"))
    record = fly_episode(episode, tmp_path / "bag", world=world)
    assert (record.result["valid"], record.result["invalid_reason"]) == (False, "simulator_lost")
    assert record.run["invalid_detail"] == "it went away"
    assert check_bag(tmp_path / "bag").ok


def test_an_error_keeps_what_was_flown_as_partial(episode: Episode, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fly_episode(episode, tmp_path / "bag", world=Failing(episode, 50, ZeroDivisionError()))
    assert not (tmp_path / "bag").exists()
    saved = repair_bag(partial_of(tmp_path / "bag"), tmp_path / "saved")
    assert saved.recording.messages > 40


def test_nothing_is_left_of_a_flight_that_never_began(
    episode: Episode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Simulator(episode)

    def never(_: object) -> SimTick:
        raise SpoiltError("not_ready", "no heartbeat")

    monkeypatch.setattr(Simulator, "first", never)
    with pytest.raises(SpoiltError, match="no heartbeat"):
        fly_episode(episode, tmp_path / "bag", world=world)
    assert list(tmp_path.iterdir()) == []


def test_ticks_advance_one_at_a_time_and_the_order_is_to_wait_first(episode: Episode) -> None:
    flight = Flight(episode, None)
    assert (flight.score.tick, flight.score.orders.order) == (0, Order.WAIT)
    for tick in range(1, 31):
        flight.advance()
        assert flight.score.tick == tick
    assert flight.score.orders.order is Order.TAKE_OFF and not flight.score.done
