"""From a scenario to an episode: what decides what, and refusals that give the figure that forbids it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_core.errors import ContractError, InputError
from sar_eval.scenario import prepare as preparing
from sar_eval.scenario.model import INDEX_LIMIT, SEED_LIMIT, FaultConfig, Scenario, Source
from sar_eval.scenario.prepare import episode_wind, prepare
from sar_sim.radio.devices import DeviceKind

FIELD = Scenario(drones=2, victims=2, decoys=3)


@pytest.mark.parametrize(("seed", "index"), [(-1, 0), (SEED_LIMIT, 0), (0, -1), (0, INDEX_LIMIT)])
def test_numbers_without_a_stream_are_refused(seed: int, index: int) -> None:
    with pytest.raises(InputError, match=r"(seed|episode) = -?\d+: must be 0 or more and below \d+"):
        prepare(FIELD, seed, index)


def test_the_largest_numbers_are_episodes_too() -> None:
    assert prepare(FIELD, SEED_LIMIT - 1, INDEX_LIMIT - 1).seed == SEED_LIMIT - 1


def test_wind_and_devices_are_the_episodes_and_not_the_seeds() -> None:
    """So that a condition is compared with another on the same layouts."""
    first, other_seed, other_index = prepare(FIELD, 0, 7), prepare(FIELD, 1, 7), prepare(FIELD, 0, 8)
    assert (first.wind_mps == other_seed.wind_mps).all() and (first.wind_mps != other_index.wind_mps).any()
    tracks = [[d.track.tolist() for d in e.devices] for e in (first, other_seed, other_index)]
    assert tracks[0] == tracks[1] != tracks[2]
    assert np.linalg.norm(first.wind_mps) == pytest.approx(2.0) and first.wind_mps[2] == 0.0


@pytest.mark.parametrize("index", [0, 1, 99])
def test_more_wind_blows_from_the_same_side(index: int) -> None:
    assert episode_wind(6.0, "village", index) == pytest.approx(3.0 * episode_wind(2.0, "village", index))
    assert episode_wind(6.0, "village", index) != pytest.approx(episode_wind(6.0, "forest", index))


def test_without_its_victims_an_episode_is_otherwise_the_same() -> None:
    there, absent = prepare(FIELD, 0, 7), prepare(FIELD.model_copy(update={"victim_absent": True}), 0, 7)
    decoys = [d for d in there.devices if d.kind != DeviceKind.VICTIM]
    assert [(d.address, d.track.tolist()) for d in absent.devices] == [(d.address, d.track.tolist()) for d in decoys]
    assert len(there.devices) - len(decoys) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"speed_mps": 10.5}, "needs 12.5 m/s of air speed; x500 reaches 12 m/s: lower speed_mps or wind_mps"),
        ({"wind_mps": 4.5}, "speed_mps = 8 with wind_mps = 4.5 needs 12.5 m/s"),
        ({"altitude_m": 110.5}, "altitude_m = 110.5 must stay 10 m below the ceiling of open_field, 120 m"),
        ({"world": "atlantis"}, "world 'atlantis': no such file or name"),
        ({"vehicle": "x600"}, "vehicle 'x600' is not known; allowed: sihsim_quadx, x500, x500_gz"),
        ({"radio": "loud"}, "radio 'loud' is not known; allowed: near, open_ground, optimistic, rubble"),
        ({"radio": "default"}, "radio 'default' is no more: no measurement supported it; give 'open_ground'"),
        ({"radio": "short_range"}, "radio 'short_range' is no more: no measurement supported it; give 'rubble'"),
        ({"policy": "a.npz"}, "policy = 'a.npz' is given, but the pattern is"),
        ({"pattern": "policy"}, "pattern policy needs a weights file"),
        (
            {"faults": (FaultConfig(kind="gps_loss", drone=5, begin_s=1.0),)},
            "faults, number 1 (gps_loss): drone = 5: the mission has 4 drones",
        ),
    ],
)
def test_what_cannot_be_flown_is_refused_where_it_was_asked_for(given: dict[str, Any], said: str) -> None:
    source = Source(Path("mission.yaml"))
    with pytest.raises(InputError) as caught:
        prepare(Scenario(**given), 0, 0, source=source)
    assert str(caught.value).startswith("mission.yaml: ") and said in str(caught.value)


@pytest.mark.parametrize("given", [{"speed_mps": 10.0}, {"wind_mps": 4.0}, {"altitude_m": 110.0}])
def test_what_is_just_within_is_flown(given: dict[str, Any]) -> None:
    prepare(Scenario(**given), 0, 0)


def test_drones_stand_in_a_row_from_west_to_east() -> None:
    """So that neighbours in number are neighbours in the search."""
    for drones in (1, 2, 7):
        spawns = prepare(Scenario(drones=drones, radio=None), 0, 0).spawns
        assert spawns.shape == (drones, 4) and (np.diff(spawns[:, 0]) >= 0.0).all()


def test_without_radio_nothing_is_on_the_air_and_uncalibrated_no_probability_is_known() -> None:
    deaf = prepare(Scenario(radio=None), 0, 0)
    assert (deaf.radio, deaf.calibration, deaf.devices) == (None, None, ())
    assert prepare(Scenario(), 0, 0, calibrated=False).calibration is None
    assert prepare(Scenario(), 0, 0).calibration is not None


def test_a_calibration_of_another_radio_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = preparing.calibration_path("near")
    monkeypatch.setattr(preparing, "calibration_path", lambda name: other)
    with pytest.raises(ContractError, match=r"radio .*open_ground\.yaml: "):
        prepare(Scenario(), 0, 0)


def test_a_fence_that_is_no_upright_rectangle_is_refused_with_its_areas() -> None:
    episode = prepare(FIELD, 0, 0)
    cut = replace(episode.world, fence=episode.world.fence[:3])
    with pytest.raises(InputError, match=r"encloses 96800 of its box's 193600 m2"):
        preparing._check_room(cut, episode.spawns)
    low = episode.world.fence.min(axis=0)
    beside = episode.spawns.copy()
    beside[0, :2] = low + 6.0
    with pytest.raises(InputError, match="a spawn point lies within 6 m of the fence"):
        preparing._check_room(episode.world, beside)
    beside[0, :2] = low + 6.01
    preparing._check_room(episode.world, beside)
