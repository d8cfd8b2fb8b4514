"""What a tier can fly: defaults that follow it, and refusals that say where the wish came from."""

from __future__ import annotations

import pytest

from sar_core.errors import InputError
from sar_eval.backends import choose_tier
from sar_eval.config import FaultConfig, Scenario, Source, prepare
from sar_eval.flying import fly
from sar_eval.tiers import AUTOPILOTS, TIERS, fit, repeats


def test_the_embedded_tier_takes_a_scenario_as_it_is() -> None:
    scenario = Scenario(vehicle="x500", wind_mps=3.0)
    assert fit(scenario, "embedded", Source()) is scenario


@pytest.mark.parametrize("tier", AUTOPILOTS)
def test_px4s_simulator_has_one_vehicle_still_air_and_equal_motors(tier: str) -> None:
    episode = prepare(Scenario(world="village"), 0, 0, tier)
    assert episode.vehicle.name == "sihsim_quadx"
    assert episode.wind_mps.tolist() == [0.0, 0.0, 0.0]
    assert episode.scenario.thrust_variation == 0.0
    assert episode.tier == tier
    assert tier in episode.episode_id


def test_a_scenario_fitted_once_fits_again() -> None:
    """The graph hands its nodes the fitted one."""
    once = fit(Scenario(world="village"), "sih", Source())
    assert fit(Scenario.model_validate(once.model_dump()), "sih", Source()) == once


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


def test_faults_of_the_air_need_no_vehicle() -> None:
    faults = (FaultConfig(kind="link_loss", drone=1, begin_s=5.0),)
    assert fit(Scenario(faults=faults), "sih", Source()).faults == faults


def test_an_unknown_tier_is_named_with_those_that_are() -> None:
    with pytest.raises(InputError, match="backend 'hitl' is not known; allowed: embedded, sitl, sih, auto"):
        choose_tier("hitl")


def test_only_the_embedded_tier_repeats_itself() -> None:
    assert [tier for tier in TIERS if repeats(tier)] == ["embedded"]


def test_a_tier_that_cannot_start_leaves_an_invalid_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it was tried as often as said, with the reason of every time."""
    from sar_eval import flying
    from sar_eval.simulator import SpoiltError

    tries = []

    def refuse(*_: object) -> object:
        tries.append(1)
        raise SpoiltError("not_ready", "vehicle 2 gave no heartbeat")

    monkeypatch.setattr(flying, "world_of", refuse)
    episode = prepare(Scenario(drones=2, radio=None), 0, 0, "sih")
    record = fly(episode, None, retries=2)
    assert record.result["invalid_reason"] == "not_ready"
    assert record.result["collisions"] == 0
    assert len(tries) == 3
    assert record.run["spoilt_attempts"] == [{"reason": "not_ready", "detail": "vehicle 2 gave no heartbeat"}] * 3
