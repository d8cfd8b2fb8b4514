"""How well drones hear a device: its distance, stretched by what stands between, and which of them hear it at all.

Effective metres are d * 10^(loss / 20): the distance in the open at which a wave arrives as weak as this one, with the
loss that the channel itself counts on the straight way (`radio.obstruction.loss_db`), and what the device sends more or
less than the budget's phone. Echoes and shadowing are not in it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.radio import WAVELENGTH_M
from sar_eval.scenario.model import Episode
from sar_eval.stage1.kinematics import KinematicTrack
from sar_sim.radio.channel import make_scene
from sar_sim.radio.obstruction import loss_db
from sar_sim.radio.radioconfig import RadioConfig
from sar_swarm.sensing.gdop import gdop

Floats = NDArray[np.float64]

LOOK_S = 1.0
"""Between two looks at where drones are."""


class Scenery(NamedTuple):
    """What a world and a link budget do to a wave: bodies [B, channel.BODY], and how far half of the frames arrive."""

    bodies: Floats
    reach_m: float


class SwarmPlaces(NamedTuple):
    """Where drones were: places float64[T, N, 3] every LOOK_S from the search's begin on, and how long it took."""

    places: Floats
    search_s: float


def scenery_of(episode: Episode) -> Scenery:
    """Of an episode with a radio."""
    assert episode.radio is not None
    return Scenery(make_scene(episode.world, episode.radio).bodies, reach_m(episode.radio))


def reach_m(config: RadioConfig) -> float:
    """Distance in the open at which half of a victim's frames arrive: free space (Friis), the budget's own midpoint."""
    margin_db = config.victim_dbm - config.noise_dbm - config.detection_midpoint_db
    return WAVELENGTH_M / (4.0 * math.pi) * math.pow(10.0, margin_db / 20.0)


def looks_of(track: KinematicTrack, altitude_m: float) -> SwarmPlaces:
    """A flown track as looks, all at one altitude."""
    search_s = float(track.times_s[-1])
    at = np.searchsorted(track.times_s, np.arange(0.0, search_s, LOOK_S) - 1e-9)
    level = np.full((len(at), track.positions.shape[1], 1), altitude_m)
    return SwarmPlaces(np.concatenate([track.positions[at], level], axis=2), search_s)


@inlined
def _plain(place: Floats, device: Floats) -> float:
    return math.sqrt((place[0] - device[0]) ** 2 + (place[1] - device[1]) ** 2 + (place[2] - device[2]) ** 2)


@inlined
def _stretched(bodies: Floats, place: Floats, device: Floats, plain: float) -> float:
    loss = loss_db(bodies, device[0], device[1], device[2], place[0], place[1], place[2], -1)
    return float(plain * 10.0 ** (loss / 20.0))


@compiled
def effective_m(bodies: Floats, places: Floats, device: Floats) -> Floats:
    """Effective distance [N] of a device [3] from each of the drones [N, 3]."""
    found = np.empty(places.shape[0])
    for i in range(places.shape[0]):
        found[i] = _stretched(bodies, places[i], device, _plain(places[i], device))
    return found


@compiled
def nearest_m(bodies: Floats, places: Floats, device: Floats) -> Floats:
    """The least effective distance [T] of a device [3] from the drones at places [T, N, 3].

    Drones are asked from the nearest on until the next is farther in the open than one before through all there is.
    """
    looks, drones = places.shape[0], places.shape[1]
    found = np.empty(looks)
    plain = np.empty(drones)
    for t in range(looks):
        for i in range(drones):
            plain[i] = _plain(places[t, i], device)
        least = np.inf
        for _ in range(drones):
            i = int(np.argmin(plain))
            if plain[i] >= least:
                break
            least = min(least, _stretched(bodies, places[t, i], device, plain[i]))
            plain[i] = np.inf
        found[t] = least
    return found


def heard_as_m(far_m: Floats, power_db: float) -> Floats:
    """Effective metres of a device that sends so much more than the budget's phone: as near as that makes it."""
    return far_m * math.pow(10.0, -power_db / 20.0)


def constellation(
    scenery: Scenery, looks: SwarmPlaces, device: Floats, time_s: float, power_db: float = 0.0
) -> float | None:
    """GDOP of the drones within reach of a device [3] at a moment of the search; None for fewer than two of them."""
    places = looks.places[min(int(time_s / LOOK_S), len(looks.places) - 1)]
    near = heard_as_m(effective_m(scenery.bodies, places, device), power_db) <= scenery.reach_m
    return gdop(places[near], device)
