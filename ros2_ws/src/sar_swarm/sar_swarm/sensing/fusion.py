"""One drone's knowledge of every transmitter: observations of all drones it heard of, fused to positions with doubt.

Same address, same track; a device that changes its address in place keeps its track. Each track holds a bounded,
well-spread set of observations. Nothing here knows the truth: a centre is fed with its own drone's observations and
with those the link delivered. ENU, SI.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.radio import BASELINE
from sar_swarm.sensing.attention import AttentionConfig, view_weights
from sar_swarm.sensing.gate import GateState
from sar_swarm.sensing.gdop import constellation_gdop, effective_views, gdi, gdop
from sar_swarm.sensing.observation import Observation, RangeLaw
from sar_swarm.sensing.position import (
    AX,
    AY,
    AZ,
    DRONE,
    MAX_DRONES,
    MEASURED,
    PHASE,
    PHASE_STD,
    PX,
    PY,
    PZ,
    RANGE,
    TIME,
    Fix,
    Model,
    precisions,
    solve,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SNR = MEASURED
COLUMNS = MEASURED + 1
SECTORS = 12
"""A viewpoint is one drone within one of twelve 30 degree sectors around the transmitter."""
MAX_VIEWS = 64
OVERLAP_S = 1.0
END_OF_HISTORY = 1e6
"""A drone's first and last observation are kept before all others."""


@dataclass(frozen=True)
class FusionConfig:
    """When tracks are solved, what counts as an independent view, and when two addresses are one device."""

    capacity: int = 200
    thinned: int = 150
    min_observations: int = 4
    min_new: int = 4
    growth: float = 0.2
    """A track of n observations waits for growth * n new ones (at least min_new), but not beyond max_wait_s."""
    max_wait_s: float = 10.0
    view_observations: int = 2
    view_gap_rad: float = math.radians(30.0)
    merge_distance_m: float = 10.0
    merge_gap_s: float = 30.0
    max_tracks: int = 64
    noise_floor_dbm: float = -95.0
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    model: Model = field(default_factory=Model)


def fusion_config(
    law: RangeLaw, bearing_bias_rad: float, noise_floor_dbm: float, attention: AttentionConfig | None = None
) -> FusionConfig:
    """A fusion centre's numbers for the link budget that its swarm was told."""
    model = Model(
        shadow_log_std=law.log_std(law.shadowing_db),
        power_log_std=law.log_std(law.power_db),
        bias_phase_std_rad=bearing_bias_rad,
    )
    return FusionConfig(noise_floor_dbm=noise_floor_dbm, attention=attention or AttentionConfig(), model=model)


class Estimate(NamedTuple):
    """What one drone believes about one transmitter: everything a report and its confidence are made of.

    ``covariance`` float64[2, 2] in m^2; ``ambiguity_gap`` is the log-likelihood lead over the runner-up position;
    ``views`` counts bearings more than 30 degrees apart, of one drone or several: two side by side are one view; shares
    are of all observations heard, usable or not; ``chi2`` is per measured number. ``path_gdop`` takes every viewpoint
    of the way flown as a sensor, ``constellation_gdop`` only the drones that hear it at ``time_s``, each where its
    latest usable observation was made.
    """

    track: int
    address: int
    time_s: float
    x: float
    y: float
    covariance: Floats
    views: int
    path_gdop: float | None
    constellation_gdop: float | None
    gdi: float | None
    n_eff: float
    chi2: float
    ambiguity_gap: float
    second: tuple[float, float] | None
    speed_mps: float
    speed_gain: float
    power_log: float
    observations: int
    drones: int
    usable_share: float
    accept_share: float
    beacon_share: float
    known: bool
    first_s: float
    last_s: float

    @property
    def information_dop_m(self) -> float:
        """Horizontal standard deviation (m), the root of the covariance's trace: all information together."""
        return math.sqrt(float(self.covariance[0, 0] + self.covariance[1, 1]))

    @property
    def confirmed(self) -> bool:
        """Seen from at least two independent places."""
        return self.views >= 2


@compiled
def keyframes(rows: Floats, wanted: int) -> Ints:
    """Indices of ``wanted`` rows to keep: drops, one by one, the row whose absence leaves the smallest hole.

    A hole is measured along its drone's own history in time, way flown and turn of the array; doubtful phases go first.
    """
    n = rows.shape[0]
    before, after, last = np.full(n, -1), np.full(n, -1), np.full(MAX_DRONES, -1)
    for i in range(n):
        d = int(rows[i, DRONE]) % MAX_DRONES
        before[i] = last[d]
        if last[d] >= 0:
            after[last[d]] = i
        last[d] = i
    alive = np.ones(n, np.bool_)
    cost = np.zeros(n)
    stale = np.ones(n, np.bool_)
    for _ in range(n - wanted):
        least, victim = math.inf, -1
        for i in range(n):
            if not alive[i]:
                continue
            if stale[i]:
                hole = 0.0
                for k in range(2):
                    j = before[i] if k == 0 else after[i]
                    if j < 0:
                        hole += END_OF_HISTORY
                        continue
                    way = math.hypot(rows[i, PX] - rows[j, PX], rows[i, PY] - rows[j, PY])
                    turn = rows[i, AX] * rows[j, AX] + rows[i, AY] * rows[j, AY] + rows[i, AZ] * rows[j, AZ]
                    hole += abs(rows[i, TIME] - rows[j, TIME]) / 10.0 + way / 20.0 + 2.0 * (1.0 - turn)
                cost[i] = hole / rows[i, PHASE_STD]
                stale[i] = False
            if cost[i] < least:
                least, victim = cost[i], i
        alive[victim] = False
        left, right = before[victim], after[victim]
        if left >= 0:
            after[left] = right
            stale[left] = True
        if right >= 0:
            before[right] = left
            stale[right] = True
    return np.flatnonzero(alive)


@compiled
def viewpoints(rows: Floats, x: float, y: float, power: float, model: Model) -> tuple[Ints, Floats]:
    """Group rows into viewpoints around (x, y): each row's viewpoint int64[K], and per viewpoint float64[V, 7]:
    drone, rows, mean position (2), mean standardised range and phase residual, mean signal to noise ratio (dB)."""
    n = rows.shape[0]
    key, of = np.full(MAX_VIEWS, -1), np.empty(n, np.int64)
    views = np.zeros((MAX_VIEWS, 7))
    in_range, in_phase = precisions(rows, x, y, model)
    count = 0
    for i in range(n):
        dx, dy, dz = x - rows[i, PX], y - rows[i, PY], model.height_m - rows[i, PZ]
        turn = (math.atan2(-dy, -dx) / (2.0 * math.pi)) % 1.0
        wanted = (int(rows[i, DRONE]) % MAX_DRONES) * SECTORS + min(int(turn * SECTORS), SECTORS - 1)
        v = 0
        while v < count and key[v] != wanted:
            v += 1
        if v == count:
            if count == MAX_VIEWS:
                v = MAX_VIEWS - 1
            else:
                key[v] = wanted
                views[v, 0] = rows[i, DRONE]
                count += 1
        of[i] = v
        distance = math.sqrt(max(dx * dx + dy * dy + dz * dz, 1e-6))
        s = (rows[i, AX] * dx + rows[i, AY] * dy + rows[i, AZ] * dz) / distance
        e_phase = (rows[i, PHASE] - BASELINE * s + math.pi) % (2.0 * math.pi) - math.pi
        views[v, 1] += 1.0
        views[v, 2] += rows[i, PX]
        views[v, 3] += rows[i, PY]
        views[v, 4] += (math.log(rows[i, RANGE] / distance) - power) * math.sqrt(in_range[i])
        views[v, 5] += e_phase * math.sqrt(in_phase[i])
        views[v, 6] += rows[i, SNR]
    for v in range(count):
        for k in range(2, 7):
            views[v, k] /= views[v, 1]
    return of, views[:count]


def separated(azimuths: Floats, gap_rad: float) -> int:
    """The largest number of bearings of which every two lie more than ``gap_rad`` apart."""
    ordered = sorted(float(a) % (2.0 * math.pi) for a in azimuths)
    best = min(len(ordered), 1)
    for start, first in enumerate(ordered):
        count, previous = 1, first
        for other in ordered[start + 1 :]:
            if other - previous > gap_rad and first + 2.0 * math.pi - other > gap_rad:
                count, previous = count + 1, other
        best = max(best, count)
    return best


def to_row(observation: Observation, noise_floor_dbm: float) -> tuple[float, ...] | None:
    """The COLUMNS numbers of an observation; None where one is not finite, a length or spread not positive, or no drone
    has such an index."""
    o = observation
    row = (*o.numbers(), o.rssi_dbm - noise_floor_dbm)
    if o.range_m > 0.0 and o.range_std_m > 0.0 and o.phase_std_rad > 0.0 and 0 <= o.drone < MAX_DRONES:
        return row if math.isfinite(sum(row)) else None
    return None


@dataclass
class Track:
    """All that is kept of one transmitter: its addresses, its keyframes, what was counted and the last solution."""

    id: int
    address: int
    known: bool
    first_s: float
    last_s: float
    rows: Floats = field(default_factory=lambda: np.empty((0, COLUMNS)))
    pending: list[tuple[float, ...]] = field(default_factory=list)
    seen: set[tuple[int, float]] = field(default_factory=set)
    latest: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    """Per drone (time, x, y) of its latest usable observation."""
    heard: int = 0
    usable: int = 0
    accepted: int = 0
    beacons: int = 0
    solved_s: float = -math.inf
    fix: Fix | None = None
    estimate: Estimate | None = None

    def note(self, observation: Observation, row: tuple[float, ...]) -> None:
        """Count an observation and, if its gate let it through, queue it for the next solution; once only."""
        if (observation.drone, observation.time_s) in self.seen:
            return
        self.seen.add((observation.drone, observation.time_s))
        self.heard += 1
        self.beacons += observation.beacon
        self.accepted += observation.state == GateState.ACCEPT
        self.last_s = max(self.last_s, observation.time_s)
        self.first_s = min(self.first_s, observation.time_s)
        if observation.usable:
            self.usable += 1
            self.pending.append(row)
            self.stand(observation.drone, (observation.time_s, *observation.position[:2]))

    def stand(self, drone: int, place: tuple[float, float, float]) -> None:
        """A drone heard it at (time, x, y): kept if nothing later is known."""
        self.latest[drone] = max(place, self.latest.get(drone, place))

    def due(self, time_s: float, config: FusionConfig) -> bool:
        """Whether enough is new to make solving worth its cost."""
        fresh, held = len(self.pending), len(self.rows)
        if fresh == 0 or fresh + held < config.min_observations:
            return False
        return fresh >= max(config.min_new, config.growth * held) or time_s - self.solved_s >= config.max_wait_s

    def absorb(self, fresh: Floats, config: FusionConfig) -> None:
        """Take rows in, thinning the set when it is full."""
        self.rows = np.vstack([self.rows, fresh])
        if len(self.rows) > config.capacity:
            self.rows = self.rows[keyframes(self.rows, config.thinned)]

    def flush(self, config: FusionConfig) -> None:
        """Take the queued observations in."""
        if self.pending:
            self.absorb(np.array(self.pending, dtype=np.float64), config)
            self.pending = []


class FusionCentre:
    """One drone's tracks. ``add`` what was sensed or delivered, ``solve`` about once a second."""

    def __init__(self, config: FusionConfig | None = None, known_addresses: Iterable[int] = ()) -> None:
        self.config = config or FusionConfig()
        self.known = frozenset(known_addresses)
        self._tracks: dict[int, Track] = {}
        self._by_address: dict[int, Track] = {}
        self._next = 0
        self.refused = 0

    @property
    def tracks(self) -> list[Track]:
        """Tracks in the order they were begun."""
        return list(self._tracks.values())

    @property
    def estimates(self) -> list[Estimate]:
        """The latest estimate of every track that has one."""
        return [t.estimate for t in self._tracks.values() if t.estimate is not None]

    def add(self, observations: Iterable[Observation]) -> None:
        """Hand in observations of any drone, in any order and any number of times; those not usable are only counted.

        What a link garbled is refused: numbers that are not finite, lengths that are not positive, an impossible drone.
        """
        for observation in observations:
            row = to_row(observation, self.config.noise_floor_dbm)
            if row is None:
                self.refused += 1
                continue
            track = self._by_address.get(observation.address)
            if track is None:
                track = self._begin(observation)
            track.note(observation, row)

    def solve(self, time_s: float) -> list[Estimate]:
        """Solve what is due, join tracks of one device, and return the estimates that changed."""
        changed = []
        for track in self.tracks:
            if track.due(time_s, self.config):
                track.flush(self.config)
                self._estimate(track, time_s)
                changed.append(track)
        kept = [self._joined(track, time_s) for track in changed if track.id in self._tracks]
        return [t.estimate for t in {t.id: t for t in kept}.values() if t.estimate is not None]

    def _begin(self, observation: Observation) -> Track:
        if len(self._tracks) >= self.config.max_tracks:
            self._forget(min(self._tracks.values(), key=lambda t: (t.last_s, t.id)))
        address = observation.address
        track = Track(self._next, address, address in self.known, observation.time_s, observation.time_s)
        self._next += 1
        self._tracks[track.id] = self._by_address[address] = track
        return track

    def _forget(self, track: Track) -> None:
        del self._tracks[track.id]
        self._by_address = {a: t for a, t in self._by_address.items() if t is not track}

    def _joined(self, young: Track, time_s: float) -> Track:
        """The track of a device that fell silent under one address where and when this one began, made one with it."""
        config = self.config
        for old in self.tracks:
            if old is young or old.estimate is None or young.estimate is None or old.known != young.known:
                continue
            silence = young.first_s - old.last_s
            apart = math.hypot(old.estimate.x - young.estimate.x, old.estimate.y - young.estimate.y)
            doubt = max(old.estimate.information_dop_m, young.estimate.information_dop_m)
            if -OVERLAP_S <= silence <= config.merge_gap_s and max(apart, doubt) <= config.merge_distance_m:
                self._forget(young)
                self._by_address[young.address] = old
                old.address, old.last_s = young.address, young.last_s
                old.heard, old.usable = old.heard + young.heard, old.usable + young.usable
                old.accepted, old.beacons = old.accepted + young.accepted, old.beacons + young.beacons
                old.seen |= young.seen
                for drone, place in young.latest.items():
                    old.stand(drone, place)
                old.flush(config)
                old.absorb(young.rows, config)
                self._estimate(old, time_s)
                return old
        return young

    def _weights(self, track: Track) -> Floats:
        """Attention weights of the rows, by the viewpoints and residuals of the track's last solution."""
        model, attention = self.config.model, self.config.attention
        weights = (track.rows[:, SNR] >= attention.min_snr_db).astype(np.float64)
        if track.fix is not None:
            of, views = viewpoints(track.rows, track.fix.x, track.fix.y, track.fix.power_log, model)
            agreement = np.column_stack([np.ones(len(views)), views[:, 4:6]])
            agreement /= np.linalg.norm(agreement, axis=1)[:, None]
            azimuths = np.arctan2(views[:, 3] - track.fix.y, views[:, 2] - track.fix.x)
            weights = view_weights(agreement, azimuths, views[:, 2:4], views[:, 6], attention)[of]
        return weights

    def _estimate(self, track: Track, time_s: float) -> None:
        config = self.config
        weights = self._weights(track)
        track.solved_s = time_s
        if np.count_nonzero(weights) < config.min_observations:
            return
        warm = (track.fix.x, track.fix.y) if track.fix else (math.nan, math.nan)
        fix = track.fix = solve(track.rows, weights, *warm, config.model)
        _, views = viewpoints(track.rows[weights > 0.0], fix.x, fix.y, fix.power_log, config.model)
        views = views[views[:, 1] >= config.view_observations]
        azimuths = np.arctan2(views[:, 3] - fix.y, views[:, 2] - fix.x)
        drones = len(set(views[:, 0].tolist()))
        track.estimate = Estimate(
            track=track.id,
            address=track.address,
            time_s=time_s,
            x=fix.x,
            y=fix.y,
            covariance=np.array([[fix.cxx, fix.cxy], [fix.cxy, fix.cyy]]),
            views=separated(azimuths, config.view_gap_rad),
            path_gdop=gdop(views[:, 2:4], np.array([fix.x, fix.y])),
            constellation_gdop=constellation_gdop(
                np.array(list(track.latest.values())), np.array([fix.x, fix.y]), time_s
            ),
            gdi=gdi(azimuths),
            n_eff=effective_views(azimuths),
            chi2=fix.chi2,
            ambiguity_gap=fix.gap,
            second=None if math.isnan(fix.second_x) else (fix.second_x, fix.second_y),
            speed_mps=math.hypot(fix.vx, fix.vy),
            speed_gain=fix.speed_gain,
            power_log=fix.power_log,
            observations=track.usable,
            drones=drones,
            usable_share=track.usable / max(track.heard, 1),
            accept_share=track.accepted / max(track.heard, 1),
            beacon_share=track.beacons / max(track.heard, 1),
            known=track.known,
            first_s=track.first_s,
            last_s=track.last_s,
        )
