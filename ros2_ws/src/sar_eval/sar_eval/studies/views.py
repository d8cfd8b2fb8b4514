"""Error against the number of views: drones around one device, through receiver, listener and fusion as in a mission.

Nothing is searched for: one to four vehicles hold their places, or fly small circles about them, in the open field, and
one fusion centre is given every drone's observations at once, without the link's losses. What varies from trial to
trial is where the device lies and how high, the bearing of the constellation, every drone's heading, the wind's
direction and all noise; trial k is the same in every constellation.

Beside the errors stands the Cramér-Rao bound of the observations that were let through, for who knows how large the
noise is and what the device transmits: phase noise from the kappa that was flown, shadowing shared as far as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import i0e, i1e

from sar_analysis.stats import clustered
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.rates import clopper_pearson
from sar_core.errors import InputError
from sar_core.streams import stream
from sar_eval.episode.briefing import range_law
from sar_eval.episode.pool import spread
from sar_eval.scenario.prepare import load_named_vehicle, radio_path
from sar_eval.scenario.resources import world_path
from sar_sim.judging.scoring import NEAR_M
from sar_sim.radio.devices import VICTIM_HEIGHT_M, Device, DeviceKind
from sar_sim.radio.radioconfig import RadioConfig, load_radio
from sar_sim.radio.receiver import Receiver
from sar_sim.vehicle.airframe import Vehicle
from sar_sim.vehicle.fleet import STEP_NS, TICKS_PER_SECOND, Fleet, step_of_tick
from sar_sim.world.world import World, load_world
from sar_swarm.sensing.fusion import FusionCentre, fusion_config, to_row
from sar_swarm.sensing.gdop import crlb
from sar_swarm.sensing.observation import Listener, ListenerConfig
from sar_swarm.sensing.position import MEASURED, PHASE_STD, RANGE, RANGE_STD, Model, precisions

Floats = NDArray[np.float64]

WORLD, RADIO, VEHICLE = "open_field", "open_ground", "x500"
TIMES_S = (10.0, 20.0, 30.0, 60.0)
ALTITUDE_M = 30.0
WIND_MPS = 2.0
CIRCLE_MPS = 4.0
WARM_UP_S = 5.0
BESIDE_M = 5.0
BEHIND_M = 10.0
OFF_CENTRE_M = 50.0
FARTHEST_M = 120.0
ADDRESS = 0x020000000000
CONSTELLATIONS = {
    "single": (1,),
    "right_angle": (2,),
    "spread": (2, 3, 4),
    "collinear": (2, 3, 4),
    "side_by_side": (2, 3, 4),
}
"""How many drones each is flown with. Two that are spread by 360 / N stand opposite, where lines of sight are parallel:
what two views can do is shown at right angles."""
ROOT_FROM = "right_angle"
"""Scaling by 1 / sqrt(N) starts from two views at right angles: like three and four evenly spread ones they have a
GDOP of 2 / sqrt(N), so that the number of views is all that differs."""
OWN_POSITION_M, OWN_HEADING_RAD = 0.06, 0.004
"""What is left of the embedded estimator's errors in the mean over a minute of hovering: the least that all of a
drone's observations have in common."""
_NONE = np.full(3, np.nan)


@dataclass(frozen=True)
class ViewConfig:
    """What is flown: noise knobs, horizontal distance from the device, each drone's circle (0: it hovers)."""

    sigma: float = 0.05
    kappa: float = 8.0
    distance_m: float = 60.0
    circle_m: float = 10.0

    def __post_init__(self) -> None:
        if not (0.0 <= self.sigma < math.inf) or not self.kappa >= 0.0:
            raise InputError(f"sigma = {self.sigma}, kappa = {self.kappa}: allowed: 0 or more, sigma finite")
        if not 20.0 <= self.distance_m <= FARTHEST_M:
            raise InputError(f"distance_m = {self.distance_m}: allowed: 20 to {FARTHEST_M:g}")
        if not 0.0 <= self.circle_m <= 0.5 * self.distance_m:
            raise InputError(f"circle_m = {self.circle_m}: allowed: 0 (hovering) to half of distance_m")


class Trial(NamedTuple):
    """One flight to fly: which constellation of how many drones, and which draw of everything else."""

    constellation: str
    drones: int
    number: int
    seed: int
    config: ViewConfig


class Look(NamedTuple):
    """What was known of the device at one time: metres, all NaN but the bound before there is a fix."""

    error_m: float
    path_gdop: float
    constellation_gdop: float
    information_dop_m: float
    crlb_m: float


@dataclass(frozen=True)
class ViewRow:
    """One constellation at one time: ``fixed`` of ``trials`` had a fix; a trial without one counts as infinitely far,
    and is left out of ``rms_m`` only. ``far`` is the share more than 10 m off, the exact interval beside: arrays that
    cannot tell front from back may agree on a ghost. Dilutions are medians, ``crlb_m`` a root mean square; None
    where undefined. ``root_m`` is the median that 1 / sqrt(N) leads to expect."""

    constellation: str
    drones: int
    time_s: float
    trials: int
    fixed: int
    median_m: Interval
    cep95_m: Interval
    rms_m: Interval | None
    far: Interval
    crlb_m: Interval | None
    root_m: Interval | None
    path_gdop: Interval | None
    constellation_gdop: Interval | None
    information_dop_m: Interval | None


def places(constellation: str, drones: int, distance_m: float) -> Floats:
    """Where the drones stand around the device, float64[N, 2]; all at ``distance_m`` in the mean."""
    if drones not in CONSTELLATIONS.get(constellation, ()):
        known = ", ".join(f"{name} of {'/'.join(map(str, counts))}" for name, counts in CONSTELLATIONS.items())
        raise InputError(f"constellation {constellation!r} of {drones}: allowed: {known}")
    middle = np.arange(drones) - 0.5 * (drones - 1)
    if constellation == "collinear":
        return np.column_stack([distance_m + BEHIND_M * middle, np.zeros(drones)])
    if constellation == "side_by_side":
        return np.column_stack([np.full(drones, distance_m), BESIDE_M * middle])
    turn = 0.5 * math.pi if constellation == "right_angle" else 2.0 * math.pi / drones
    bearings = turn * np.arange(drones)
    return distance_m * np.column_stack([np.cos(bearings), np.sin(bearings)])


@cache
def _world() -> World:
    return load_world(world_path(WORLD))


@cache
def _radio() -> RadioConfig:
    return load_radio(radio_path(RADIO))


@cache
def _vehicle() -> Vehicle:
    return load_named_vehicle(VEHICLE)


def fly_trial(trial: Trial) -> list[Look]:
    """One look at each of TIMES_S."""
    config, n, world, radio = trial.config, trial.drones, _world(), _radio()
    rng = stream("view trial", trial.seed, trial.number)
    west, south, east, north = world.area
    away, at = OFF_CENTRE_M * math.sqrt(rng.random()), rng.uniform(-math.pi, math.pi)
    device = np.array([0.5 * (west + east) + away * math.cos(at), 0.5 * (south + north) + away * math.sin(at)])
    height = rng.uniform(*VICTIM_HEIGHT_M)
    turned, begun, wind_from = rng.uniform(-math.pi, math.pi, 3)
    headings = rng.uniform(-math.pi, math.pi, max(max(counts) for counts in CONSTELLATIONS.values()))[:n]
    c, s = math.cos(turned), math.sin(turned)
    spots = device + places(trial.constellation, n, config.distance_m) @ np.array([[c, s], [-s, c]])

    wind = WIND_MPS * np.array([math.cos(wind_from), math.sin(wind_from), 0.0])
    way = _Circle(config.circle_m, begun)
    spawns = np.column_stack([spots + way.at(0.0)[0], np.full(n, ALTITUDE_M), headings])
    fleet = Fleet(_vehicle(), spawns, trial.seed, trial.number, wind, in_air=True)
    for k in range(n):
        fleet.command(k, spawns[k, :3], _NONE, _NONE, headings[k])
    fleet.warm_up(WARM_UP_S)

    track = np.array([[0.0, *device, height]])
    victim = Device(ADDRESS, DeviceKind.VICTIM, track, scan_interval_s=1.0, randomises=False, sleep_share=0.0)
    receiver = Receiver(radio, world, [victim], n, trial.seed, trial.number, config.sigma, config.kappa)
    law = range_law(radio)
    listeners = [Listener(k, ListenerConfig(law=law)) for k in range(n)]
    centre = FusionCentre(fusion_config(law, radio.bearing_bias_rad, radio.noise_dbm))

    rows: list[tuple[float, ...]] = []
    frames: list[int] = []
    looks: list[Look] = []
    for tick in range(1, round(TIMES_S[-1] * TICKS_PER_SECOND) + 1):
        offset, velocity = way.at(tick / TICKS_PER_SECOND)
        for k in range(n):
            where = np.array([*(spots[k] + offset), ALTITUDE_M])
            fleet.command(k, where, np.array([*velocity, 0.0]), _NONE, headings[k])
        fleet.tick(step_of_tick(tick) - fleet.step)
        now, state = fleet.step * STEP_NS, fleet.snapshot()
        for k, heard in enumerate(receiver.listen(now, tick, state.position, state.attitude)):
            observed, _ = listeners[k].listen(heard, state.est_position[k], state.est_attitude[k], now * 1e-9)
            centre.add(observed)
            for observation in observed:
                row = to_row(observation, radio.noise_dbm)
                if observation.usable and row is not None:
                    rows.append(row)
                    frames.append(observation.frames)
        if tick % TICKS_PER_SECOND == 0:
            centre.solve(now * 1e-9)
        if tick == TIMES_S[len(looks)] * TICKS_PER_SECOND:
            bound = known_noise_bound(np.array(rows), np.array(frames), device, height, config.kappa)
            looks.append(_look(centre, device, bound))
    return looks


class _Circle(NamedTuple):
    """A way about a drone's place: all drones fly it alike, so that the constellation keeps its shape."""

    radius_m: float
    begun_rad: float

    def at(self, time_s: float) -> tuple[Floats, Floats]:
        """Offset from the place and velocity, each [2]."""
        if self.radius_m == 0.0:
            return np.zeros(2), np.zeros(2)
        angle = self.begun_rad + CIRCLE_MPS / self.radius_m * time_s
        ahead = np.array([-math.sin(angle), math.cos(angle)])
        return self.radius_m * np.array([math.cos(angle), math.sin(angle)]), CIRCLE_MPS * ahead


def _look(centre: FusionCentre, device: Floats, bound: float | None) -> Look:
    crlb_m = math.nan if bound is None else bound
    found = centre.estimates
    if not found:
        return Look(math.nan, math.nan, math.nan, math.nan, crlb_m)
    e = found[0]
    path, constellation = (math.nan if value is None else value for value in (e.path_gdop, e.constellation_gdop))
    return Look(math.hypot(e.x - device[0], e.y - device[1]), path, constellation, e.information_dop_m, crlb_m)


def known_noise_bound(
    rows: Floats, frames: NDArray[np.int64], device: Floats, height_m: float, kappa: float
) -> float | None:
    """The Cramér-Rao bound (m) of these observations [K, >= 12] of ``frames`` [K] frames each, for who knows the noise.

    A mean phase of n frames of von Mises noise has at best the variance 1 / (n kappa A(kappa)), A = I1 / I0 (Mardia and
    Jupp, Directional Statistics, 2000, section 5.3), besides what the receiver itself leaves. Shadowing that
    observations of a drone share counts as often as they share it; own position and heading are the bound's nuisances.
    """
    if not len(rows):
        return None
    model = Model(pose_std_m=0.0, yaw_std_rad=0.0, bias_phase_std_rad=0.0, height_m=height_m)
    in_range, _ = precisions(rows, device[0], device[1], model)
    information = kappa * float(i1e(kappa) / i0e(kappa)) if math.isfinite(kappa) else math.inf
    known = rows[:, :MEASURED].copy()
    known[:, RANGE_STD] = rows[:, RANGE] / np.sqrt(in_range)
    with np.errstate(divide="ignore"):
        known[:, PHASE_STD] = np.sqrt(1.0 / (frames * information) + ListenerConfig().phase_floor_rad ** 2)
    return crlb(known, device, height_m, OWN_POSITION_M, OWN_HEADING_RAD)


def plan_views(trials: int, seed: int, config: ViewConfig, only: Iterable[tuple[str, int]] = ()) -> list[Trial]:
    """Every constellation (or only these) with every trial."""
    if trials < 2 or seed < 0:
        raise InputError(f"trials = {trials} from seed {seed}: at least two trials, no seed below 0")
    cells = list(only) or [(name, n) for name, counts in CONSTELLATIONS.items() for n in counts]
    for name, n in cells:
        places(name, n, config.distance_m)
    return [Trial(name, n, number, seed, config) for name, n in cells for number in range(trials)]


def study(plan: list[Trial], workers: int, tell: Callable[[int, int], None] = lambda done, of: None) -> list[ViewRow]:
    """Fly a plan and say what it comes to, one row per constellation and time; ``tell`` hears how many are flown."""
    looks: list[list[Look]] = []
    for found in spread(fly_trial, plan, workers):
        looks.append(found)
        tell(len(looks), len(plan))
    return summarise(plan, np.array(looks))


def summarise(plan: list[Trial], looks: Floats) -> list[ViewRow]:
    """Rows of the plan's looks float64[trials, times, 5], with intervals over trials, each its own layout."""
    rows = []
    cells = np.array([f"{trial.constellation} {trial.drones}" for trial in plan])
    for cell in dict.fromkeys(cells.tolist()):
        chosen = np.flatnonzero(cells == cell)
        first = plan[chosen[0]]
        numbers = [plan[k].number for k in chosen]
        rows += [
            _row(first.constellation, first.drones, time_s, looks[chosen, k], numbers)
            for k, time_s in enumerate(TIMES_S)
        ]
    start = {row.time_s: row for row in rows if row.constellation == ROOT_FROM}
    return [replace(row, root_m=_root(row, start.get(row.time_s))) for row in rows]


def _row(constellation: str, drones: int, time_s: float, looks: Floats, numbers: list[int]) -> ViewRow:
    error = looks[:, 0]
    fixed = np.isfinite(error)
    missed = np.where(fixed, error, math.inf)
    path, now, information = (_median(column, numbers) for column in looks[:, 1:4].T)
    bound, far = looks[:, 4], missed > NEAR_M
    exact = clopper_pearson(int(far.sum()), len(far), unit="trials")
    return ViewRow(
        constellation,
        drones,
        time_s,
        len(error),
        int(fixed.sum()),
        clustered.quantile(missed, 0.5, numbers, unit="trials"),
        clustered.quantile(missed, 0.95, numbers, unit="trials"),
        _rms(error[fixed], [number for number, has in zip(numbers, fixed, strict=True) if has]),
        replace(clustered.share(far, np.ones(len(far)), numbers, unit="trials"), exact=exact),
        _rms(bound, numbers) if np.isfinite(bound).all() else None,
        None,
        path,
        now,
        information,
    )


def _rms(error: Floats, numbers: list[int]) -> Interval | None:
    """Root mean square: the interval of the mean square, its ends' roots."""
    if not len(error):
        return None
    square = clustered.mean(error**2, numbers, unit="trials", bounds=(0.0, math.inf))
    value, low, high = (math.sqrt(end) if end >= 0.0 else math.nan for end in (square.value, square.low, square.high))
    return replace(square, value=value, low=low, high=high, estimand=f"root mean square: {square.estimand}")


def _median(values: Floats, numbers: list[int]) -> Interval | None:
    """What is undefined counts as infinite; None where the median is."""
    found = clustered.quantile(np.where(np.isfinite(values), values, math.inf), 0.5, numbers, unit="trials")
    return found if math.isfinite(found.value) else None


def _root(row: ViewRow, start: ViewRow | None) -> Interval | None:
    opposite = row.constellation == "spread" and row.drones == 2
    if start is None or opposite or row.constellation not in (ROOT_FROM, "spread"):
        return None
    median, factor = start.median_m, math.sqrt(start.drones / row.drones)
    if not math.isfinite(median.value):
        return None
    value, low, high = (factor * part for part in (median.value, median.low, median.high))
    return replace(median, value=value, low=low, high=high, estimand=f"{factor:.3g} times {median.estimand}")


def draw_views(rows: list[ViewRow], config: ViewConfig, picture: Path) -> None:
    """Left: median against the number of views at the last time; right: root mean square and bound against time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (by_number, by_time) = pyplot.subplots(1, 2, figsize=(13, 5), layout="constrained")
    last = [row for row in rows if row.time_s == TIMES_S[-1]]
    markers = zip(CONSTELLATIONS, "Dso^v", (0.0, -0.04, 0.04, -0.08, 0.08), strict=True)
    for number, (name, marker, aside) in enumerate(markers):
        shown = {row.drones + aside: row.median_m for row in last if row.constellation == name}
        _draw(by_number, shown, f"{marker}-C{number}", name.replace("_", " "))
    rooted = [(row.drones, row.root_m.value) for row in last if row.root_m is not None]
    by_number.plot(*np.array(rooted).reshape(-1, 2).T, "xk", label="1 / sqrt(N) from two at right angles")
    by_number.set(xlabel="views (drones)", ylabel="median error (m)", xticks=(1, 2, 3, 4))
    by_number.set(title=f"after {TIMES_S[-1]:g} s")
    for number, (name, drones) in enumerate((("single", 1), (ROOT_FROM, 2), ("spread", 3), ("spread", 4))):
        mine = [row for row in rows if (row.constellation, row.drones) == (name, drones)]
        shown = {row.time_s: row.rms_m for row in mine if row.rms_m is not None}
        _draw(by_time, shown, f"o-C{number}", f"{drones}, {name.replace('_', ' ')}")
        bounds = [(row.time_s, row.crlb_m.value) for row in mine if row.crlb_m is not None]
        by_time.plot(*np.array(bounds).reshape(-1, 2).T, f"--C{number}")
    by_time.set(xlabel="time (s)", ylabel="root mean square error (m)", title="dashed: Cramér-Rao bound")
    for axis in (by_number, by_time):
        axis.set(yscale="log")
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=8)
    flown = f"circles of {config.circle_m:g} m" if config.circle_m else "hovering"
    figure.suptitle(
        f"Views (embedded): {WORLD}, {config.distance_m:g} m away, {flown}, sigma {config.sigma:g}, "
        f"kappa {config.kappa:g}, {last[0].trials if last else 0} trials each; bars: 95 %"
    )
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)


def _draw(axis: Any, found: dict[float, Interval], style: str, label: str) -> None:
    """Values with their intervals, where they are finite."""
    told = [(x, v.value, v.value - v.low, v.high - v.value) for x, v in found.items() if math.isfinite(v.value)]
    if told:
        x, value, below, above = np.nan_to_num(np.array(told), posinf=0.0).T
        axis.errorbar(x, value, yerr=(below, above), fmt=style, capsize=3, label=label)
