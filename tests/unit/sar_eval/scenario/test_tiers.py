"""What a tier can fly: defaults that follow it, and refusals that say where the wish came from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_core.errors import InputError
from sar_eval.backends.backend import SpoiltError, Stop
from sar_eval.backends.embedded import Simulator
from sar_eval.backends.registry import choose_tier
from sar_eval.campaign.manifest import file_sha256, input_hashes
from sar_eval.episode.attempts import fly
from sar_eval.scenario import tiers
from sar_eval.scenario.model import Episode, FaultConfig, Scenario, Source
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.tiers import Tier, fit, piloted, register, registry, repeats


def test_the_embedded_tier_takes_a_scenario_as_it_is() -> None:
    scenario = Scenario(vehicle="x500", wind_mps=3.0)
    assert fit(scenario, "embedded", Source()) is scenario


@pytest.mark.parametrize("tier", ["sitl", "sih"])
def test_px4s_simulator_has_one_vehicle_still_air_and_equal_motors(tier: str) -> None:
    episode = prepare(Scenario(world="village"), 0, 0, tier)
    assert episode.vehicle.name == "sihsim_quadx"
    assert episode.wind_mps.tolist() == [0.0, 0.0, 0.0]
    assert episode.scenario.thrust_variation == 0.0
    assert episode.tier == tier
    assert tier in episode.episode_id


def test_gazebo_has_px4s_x500_and_the_episodes_wind() -> None:
    episode = prepare(Scenario(world="village"), 0, 0, "gazebo")
    assert (episode.vehicle.name, episode.scenario.thrust_variation) == ("x500", 0.0)
    assert episode.wind_mps.tolist() == prepare(Scenario(world="village"), 0, 0).wind_mps.tolist() != [0.0, 0.0, 0.0]
    assert "gazebo" in episode.episode_id


@pytest.mark.parametrize("tier", [name for name in registry() if piloted(name)])
def test_a_scenario_fitted_once_fits_again(tier: str) -> None:
    """The graph hands its nodes the fitted one."""
    once = fit(Scenario(world="village"), tier, Source())
    assert fit(Scenario.model_validate(once.model_dump()), tier, Source()) == once


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"vehicle": "x500"}, "vehicle = x500: tier sih flies sihsim_quadx only"),
        ({"wind_mps": 2.0}, "wind_mps = 2.0: tier sih flies 0.0 only"),
        ({"thrust_variation": 0.1}, "thrust_variation = 0.1"),
        ({"drones": 11}, "drones = 11: tier sih flies 10 at most"),
        ({"faults": (FaultConfig(kind="gps_loss", drone=1, begin_s=5.0),)}, "fault gps_loss: tier sih has no way"),
    ],
)
def test_what_the_tier_cannot_do_is_refused(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        fit(Scenario(**given), "sih", Source())


def test_gazebo_without_a_radio_is_refused() -> None:
    with pytest.raises(InputError, match="radio = null: tier gazebo flies with its CSI system"):
        fit(Scenario(radio=None), "gazebo", Source())


def test_faults_of_the_air_need_no_vehicle() -> None:
    faults = (FaultConfig(kind="link_loss", drone=1, begin_s=5.0),)
    assert fit(Scenario(faults=faults), "sih", Source()).faults == faults


def test_an_unknown_tier_is_named_with_those_that_are() -> None:
    with pytest.raises(InputError, match="backend 'hitl' is not known; allowed: embedded, sitl, sih, gazebo, auto"):
        choose_tier("hitl")


def test_only_the_embedded_tier_repeats_itself() -> None:
    assert [tier for tier in registry() if repeats(tier)] == ["embedded"]


def test_a_tier_that_cannot_start_leaves_an_invalid_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it was tried as often as said, with the reason of every time."""
    from sar_eval.backends.backend import SpoiltError
    from sar_eval.episode import attempts as flying

    tries = []

    def refuse(*_: object) -> object:
        tries.append(1)
        raise SpoiltError("not_ready", "vehicle 2 gave no heartbeat")

    monkeypatch.setattr(flying, "backend_of", refuse)
    episode = prepare(Scenario(drones=2, radio=None), 0, 0, "sih")
    told: list[str] = []
    record = fly(episode, None, retries=2, tell=told.append)
    assert record.result["invalid_reason"] == "not_ready"
    assert record.result["collisions"] == 0
    assert len(tries) == 3
    assert told == [
        f"attempt {k} was spoilt (not_ready: vehicle 2 gave no heartbeat); it is flown again" for k in (1, 2)
    ]
    spoilt = {"reason": "not_ready", "detail": "vehicle 2 gave no heartbeat", "flight_time_s": 0.0, "collisions": 0}
    assert record.run["spoilt_attempts"] == [spoilt] * 3


def test_who_asks_to_stop_while_a_tier_starts_is_heeded_and_nothing_is_flown_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sar_eval.backends.backend import heed
    from sar_eval.episode import attempts as flying

    def wait_for_ever(_: object, __: float, stop: Stop) -> object:
        while True:
            heed(stop)

    monkeypatch.setattr(flying, "backend_of", wait_for_ever)
    asked = iter([None, None, *["interrupted"] * 9])
    record = fly(prepare(Scenario(drones=2, radio=None), 0, 0, "sih"), None, stop=lambda: next(asked))
    assert record.result["invalid_reason"] == "interrupted"
    assert record.run["spoilt_attempts"] == [], "who stops a flight has not spoilt it"


def open_nowhere(episode: Episode, speed: float, stop: Stop) -> Simulator:
    """The door of a tier of this test's own."""
    raise SpoiltError("nowhere", "there is nothing to fly in")


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(tiers, "_KNOWN", dict(registry()))
    registry.cache_clear()
    yield register(Tier("nowhere", "nothing", f"{__name__}:open_nowhere", "", autopilots=False)).name
    registry.cache_clear()


def test_a_tier_of_ones_own_is_flown_in_its_own_backend(nowhere: str) -> None:
    episode = prepare(Scenario(drones=2, radio=None), 0, 0, nowhere)
    assert "-nowhere-" in episode.episode_id
    with pytest.raises(SpoiltError, match="nothing to fly in"):
        fly(episode, None)
    assert input_hashes(episode)["tier_sha256"] == file_sha256(Path(__file__))
    assert "tier_sha256" not in input_hashes(prepare(Scenario(drones=2, radio=None), 0, 0))


@pytest.mark.parametrize("name", ["nowhere", "sih", "two words"])
def test_a_name_that_is_taken_or_no_name_is_refused(nowhere: str, name: str) -> None:
    with pytest.raises(InputError, match=f"tier '{name}'"):
        register(Tier(name, "", "", ""))
