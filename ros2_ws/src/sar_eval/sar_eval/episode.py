"""One episode in one process: vehicles, link, controllers and referee in lockstep, as fast as the CPU goes."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import RunError
from sar_core.frames import yaw_of
from sar_core.reward import Counts, depleted, episode_return, idle_steps
from sar_core.streams import stream
from sar_core.sweep import sweep
from sar_eval import __version__
from sar_eval.config import FENCE_MARGIN_M, Episode
from sar_eval.logbook import Logbook, Status
from sar_eval.recorder import Recording
from sar_eval.sensing import Claim, Sensing
from sar_sim.coverage import Coverage, CoverageConfig
from sar_sim.faults import Injector
from sar_sim.fleet import Fleet, FleetState, add_path, stamp_ns, step_of_tick
from sar_sim.link import Link
from sar_sim.referee import Event, Referee, RefereeConfig
from sar_sim.scoring import Report
from sar_swarm.controller import Command, Order, Phase, Pilot, Plan, Sense, start_pilot, step
from sar_swarm.errand import OUT_OF_THE_SEARCH, Mission
from sar_swarm.failsafe import Failsafe
from sar_swarm.navigation import Chart
from sar_swarm.neighbours import Manners
from sar_swarm.patterns import fixed_route
from sar_swarm.pursuit import Mode, PursuitConfig
from sar_swarm.trajectory import Limits

Floats = NDArray[np.float64]

SCHEMA_VERSION = 1
STANDING_S = 1.0
TAKEOFF_LIMIT_S = 60.0
RETURN_LIMIT_S = 240.0
WARM_UP_S = 10.0
COVERAGE_TIME_S = 240.0
CURVE_STEP_S = 10.0
LOWEST_M = 5.0
NEAREST_M = 2.0
"""Plans keep 4 m from obstacles; the safety layer steers away once a drone is about to come nearer than this."""
RETURN_LAYER_M = 6.0
"""Neighbours fly home this much above each other, which is more than the safety layer keeps."""
LANDING_MPS = 3.0
"""A drone that comes down faster than this is not landing; where it touches the ground is a collision."""
PATIENCE_S = 60.0
"""How long a hypothesis may wait for its drones: long enough to come from the other end of the area."""
STATUS_TICKS = 10
"""Drones tell of their health every so many ticks."""
GROUNDED = (Phase.IDLE, Phase.TAKEOFF, Phase.LAND, Phase.LANDED)

_STATUS_DONE = 4
_STATUS_PHASE = {Order.WAIT: 1, Order.TAKE_OFF: 1, Order.SEARCH: 2, Order.RETURN: 3}


@dataclass(frozen=True)
class Progress:
    """What a watcher sees while an episode flies."""

    time_s: float
    search_time_s: float
    coverage: float
    collisions: int


@dataclass(frozen=True)
class Record:
    """An episode's outcome: ``result`` is deterministic and compared, ``run`` tells of this host and is not."""

    result: dict[str, Any]
    run: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "result": self.result, "run": self.run}


def make_plans(episode: Episode) -> list[Plan]:
    """What each drone is told before the mission."""
    s, w = episode.scenario, episode.world
    routes = episode.routes or [
        fixed_route(s.pattern, w.area, s.drones, i, s.swath_m, s.overlap) for i in range(s.drones)
    ]
    x_min, y_min = w.fence.min(axis=0) + FENCE_MARGIN_M
    x_max, y_max = w.fence.max(axis=0) - FENCE_MARGIN_M
    chart = Chart(
        obstacles=w.obstacles,
        bounds=(x_min, y_min, min(LOWEST_M, episode.altitude_m - 1.0), x_max, y_max, w.ceiling_m - FENCE_MARGIN_M),
        limits=Limits(s.speed_mps, math.radians(s.turn_rate_dps), s.acceleration_mps2),
    )
    pursuit = None
    by_hand = s.pattern == "boustrophedon_triangulation"
    if s.pursuit == "on" or by_hand:
        mode = Mode.TRIANGULATE if by_hand else Mode.CONSTELLATION
        pursuit = PursuitConfig(mode=mode, patience_s=PATIENCE_S, speed_mps=s.speed_mps, bounds=w.area)
    return [
        Plan(
            mission=Mission(
                index=i,
                drones=s.drones,
                pattern=s.pattern,
                area=w.area,
                swath_m=s.swath_m,
                key=(episode.seed, episode.index),
                routes=tuple(r for r in routes if r is not None),
                pursuit=pursuit,
            ),
            home=episode.spawns[i, :3],
            altitude_m=episode.altitude_m,
            return_altitude_m=min(episode.altitude_m + RETURN_LAYER_M * (i % 3), chart.bounds[5] - 1.0),
            chart=chart,
            fence=w.fence,
            manners=Manners(speed=s.speed_mps, clearance=NEAREST_M, ceiling=w.ceiling_m, floor=chart.bounds[2]),
            key=int(stream("planner", episode.seed, episode.index, i).integers(1 << 62)),
            turn_rate_rps=math.radians(s.turn_rate_dps),
            actor=episode.actor,
        )
        for i in range(s.drones)
    ]


class Flight:
    """An episode under way. ``advance`` flies one tick; the parts it holds know only what they may."""

    def __init__(self, episode: Episode, logbook: Logbook | None) -> None:
        s, w = episode.scenario, episode.world
        n = s.drones
        self.episode = episode
        self.logbook = logbook
        self.fleet = Fleet(
            episode.vehicle,
            episode.spawns,
            episode.seed,
            episode.index,
            episode.wind_mps,
            w.obstacles,
            s.thrust_variation,
        )
        self.fleet.warm_up(WARM_UP_S)
        self.link = Link(n, episode.seed, episode.index, s.link.loss, s.link.latency_s, s.link.jitter_s)
        frame = episode.vehicle.airframe
        self.referee = Referee(
            RefereeConfig(frame.hull_radius, frame.gear_height, w.fence, w.ceiling_m, w.obstacles), n
        )
        self.coverage = Coverage(CoverageConfig(w.area), n)
        self.plans = make_plans(episode)
        self.pilots: list[Pilot] = [start_pilot(float(yaw)) for yaw in episode.spawns[:, 3]]
        self.commands: list[Command] = []
        self.order = Order.WAIT
        self.tick = 0
        self.time_s = 0.0
        self.search_begin_s = math.inf
        self.return_begin_s = math.inf
        self.search_end_s = math.inf
        self.invalid_reason = ""
        self.flown_m = np.zeros(n)
        self.sensing = Sensing(episode) if episode.radio is not None else None
        self.injector = Injector(episode.faults, n, episode.seed, episode.index)
        self.failsafes: list[tuple[float, int, Failsafe]] = []
        self.state: FleetState = self.fleet.snapshot()
        self._search_track: list[tuple[int, Floats]] = []
        self._readings: list[tuple[Floats, list[int], list[int]]] = []
        if logbook is not None:
            logbook.info(0)
        self._decide()
        self._sample()
        self._log([], [])

    @property
    def search_time_s(self) -> float:
        if not math.isfinite(self.search_begin_s):
            return 0.0
        return min(self.time_s, self.search_end_s) - self.search_begin_s

    @property
    def done(self) -> bool:
        if self.invalid_reason:
            return True
        over = self.order is Order.RETURN and self.time_s - self.return_begin_s > RETURN_LIMIT_S
        return over or all(self._down(i) for i in range(len(self.pilots)))

    @property
    def search_over(self) -> bool:
        return math.isfinite(self.search_end_s)

    def _down(self, index: int) -> bool:
        """Landed, or lying where it fell."""
        pilot = self.pilots[index]
        crippled = pilot.vigil.state is Failsafe.CONTROLLED_DESCENT
        lies = crippled and bool(self.state.landed[index] or np.linalg.norm(self.state.velocity[index]) < 0.1)
        return pilot.phase is Phase.LANDED or lies

    def advance(self) -> None:
        """One tick: move, judge, talk, decide, record."""
        first = self.fleet.step
        self.tick += 1
        steps = step_of_tick(self.tick) - first
        self.injector.apply(self.time_s - self.search_begin_s, self.fleet, self.link)
        track = self.fleet.tick(steps)
        times = np.arange(first, first + steps + 1, dtype=np.float64) * 0.004
        self.time_s = float(times[-1])
        grounded = np.array([p.phase in GROUNDED for p in self.pilots]) & (self.state.velocity[:, 2] > -LANDING_MPS)
        try:
            events = self.referee.observe(times, track, grounded)
        except RunError:
            self.invalid_reason = "truth_not_finite"
            return
        if self.order is Order.SEARCH:
            self.coverage.observe(times - self.search_begin_s, track)
        add_path(track, self.flown_m)
        self.state = self.fleet.snapshot()
        claims = self._sense()
        self._direct()
        self._decide()
        if self.order is Order.TAKE_OFF and all(p.phase is Phase.LANDED for p in self.pilots):
            self.invalid_reason = "never_searched"
        self._sample()
        self._log(events, claims)

    def _sense(self) -> list[Claim]:
        """Radio and link: what every drone hears, what reaches the others, what they make of it."""
        state, sensing = self.state, self.sensing
        status = np.array([(p.vigil.state, p.errand.leg) for p in self.pilots], dtype=np.float64)
        if sensing is None:
            self.link.exchange(self.time_s, state.est_position, state.est_velocity, status)
            return []
        heard = sensing.hear(stamp_ns(self.tick), self.tick, state)
        self.link.exchange(self.time_s, state.est_position, state.est_velocity, status, heard.observations)
        return sensing.think(self.tick, self.time_s, self.link.inbox)

    def _heard_age(self) -> list[float]:
        """Seconds since each drone heard anything, from the start on; NaN where there is nobody to hear."""
        if len(self.plans) == 1:
            return [math.nan]
        return [self.time_s - (0.0 if math.isnan(at) else at) for at in self.link.heard_s.tolist()]

    def _senses(self) -> list[Sense]:
        state = self.state
        heard_age = self._heard_age()
        return [
            Sense(
                self.time_s,
                state.est_position[i],
                state.est_velocity[i],
                float(state.charge[i]),
                bool(state.landed[i]),
                float(state.gps_age_s[i]),
                bool(state.motors_ok[i]),
                float(state.tilt_rad[i]),
                heard_age[i],
                self.link.others(i),
                self.sensing.hypotheses(i) if self.sensing is not None else (),
            )
            for i in range(len(self.plans))
        ]

    def _decide(self) -> None:
        """Every controller takes its step on what its own drone knows."""
        outcomes = [
            step(plan, pilot, sense, self.order)
            for plan, pilot, sense in zip(self.plans, self.pilots, self._senses(), strict=True)
        ]
        for i, (before, (after, _)) in enumerate(zip(self.pilots, outcomes, strict=True)):
            if after.vigil.state is not before.vigil.state:
                self.failsafes.append((self.time_s, i, after.vigil.state))
        self.pilots = [pilot for pilot, _ in outcomes]
        self.commands = [command for _, command in outcomes]
        for i, command in enumerate(self.commands):
            self.fleet.armed[i] = command.armed
            self.fleet.command(i, command.position, command.velocity, command.acceleration, command.yaw)

    def _direct(self) -> None:
        """The operator's part: orders follow from what the drones report."""
        if self.order is Order.WAIT and self.time_s >= STANDING_S:
            self.order = Order.TAKE_OFF
        elif self.order is Order.TAKE_OFF:
            if all(z > p.altitude_m - 1.0 for z, p in zip(self.state.est_position[:, 2], self.plans, strict=True)):
                self.order = Order.SEARCH
                self.search_begin_s = self.time_s
            elif self.time_s > TAKEOFF_LIMIT_S:
                self.invalid_reason = "takeoff_timeout"
        elif self.order is Order.SEARCH:
            flown = all(p.finished or p.vigil.state in OUT_OF_THE_SEARCH for p in self.pilots)
            if flown or self.search_time_s >= self.episode.scenario.duration_s:
                self.order = Order.RETURN
                self.search_end_s = self.return_begin_s = self.time_s

    def _sample(self) -> None:
        """Keep what the return is counted from: of the search every tick, of batteries what the status tells."""
        if self.search_begin_s <= self.time_s <= self.search_end_s:
            self._search_track.append((stamp_ns(self.tick), self.state.position))
        if self.tick % STATUS_TICKS == 0:
            failsafes = [int(pilot.vigil.state) for pilot in self.pilots]
            self._readings.append((self.state.charge, failsafes, [int(pilot.phase) for pilot in self.pilots]))

    def _log(self, events: list[Event], claims: list[Claim]) -> None:
        book = self.logbook
        if book is None:
            return
        stamp = stamp_ns(self.tick)
        book.tick(stamp, self.state, self.commands)
        if self.sensing is not None:
            book.sensing(stamp, self.sensing.heard, claims)
            if self.tick % 20 == 0:
                book.devices(stamp, self.sensing.devices, self.time_s)
        for event in events:
            book.event(stamp, event)
        if self.tick % STATUS_TICKS == 0:
            delivery, age = self.link.take_delivery(), self.link.oldest_news_s(self.time_s)
            book.uav_status(stamp, self.pilots, self.commands, self.state.charge, delivery, age)

    def report(self, phase: int | None = None) -> None:
        """Once a second: how far the episode is; from here on all that was logged survives this process."""
        book = self.logbook
        if book is None:
            return
        stamp = stamp_ns(self.tick)
        summary = self.referee.summary()
        airborne = sum(not landed for landed in self.state.landed)
        book.status(
            stamp,
            Status(
                _STATUS_PHASE[self.order] if phase is None else phase,
                self.search_time_s,
                self.coverage.fraction,
                summary.collisions,
                summary.near_misses,
                airborne,
                not self.invalid_reason,
                self.invalid_reason,
            ),
        )
        book.coverage(stamp, np.isfinite(self.coverage.first_scan_s), self.coverage.config.cell_m)
        book.flush()

    def finish(self) -> None:
        """Close what is still open; the last status says how it ended."""
        events = self.referee.finish(self.time_s)
        if self.logbook is not None:
            for event in events:
                self.logbook.event(stamp_ns(self.tick), event)
        self.report(_STATUS_DONE)

    def result(self) -> dict[str, Any]:
        """The deterministic outcome, from the referee's truth alone."""
        e, s = self.episode, self.episode.scenario
        summary = self.referee.summary()
        search = self.search_time_s
        x_min, y_min, x_max, y_max = e.world.area
        cover = self.coverage
        heading = yaw_of(self.state.attitude)
        return {
            "episode_id": e.episode_id,
            "tier": e.tier,
            "profile": s.name,
            "world": e.world.name,
            "pattern": s.pattern,
            "vehicle": e.vehicle.name,
            "seed": e.seed,
            "episode": e.index,
            "episode_set": e.episode_set,
            "episode_set_sha256": e.episode_set_sha256,
            "config_sha256": e.config_sha256,
            "version": __version__,
            "scenario": e.plain_scenario(),
            "configuration": e.resolved(),
            "num_drones": s.drones,
            "area_w": x_max - x_min,
            "area_h": y_max - y_min,
            "valid": not self.invalid_reason,
            "invalid_reason": self.invalid_reason or None,
            "flight_time_s": _round(self.time_s),
            "search_time_s": _round(search),
            "coverage_240s": _round(cover.coverage_at(COVERAGE_TIME_S)),
            "coverage": _round(cover.fraction),
            "coverage_curve": [
                _round(cover.coverage_at(k * CURVE_STEP_S)) for k in range(int(search / CURVE_STEP_S) + 1)
            ],
            "time_to_95_s": _round(cover.time_to(0.95)),
            "overlap_ratio": _round(cover.overlap_ratio),
            "collisions": summary.collisions,
            "collisions_by_kind": summary.collisions_by_kind,
            "near_misses": summary.near_misses,
            "geofence_breaches": summary.geofence_breaches,
            "min_separation_m": _round(summary.min_separation_m),
            "min_clearance_m": _round(summary.min_clearance_m),
            "events": [_plain(event) for event in summary.events],
            "failsafes": [
                {"time_s": _round(time_s), "drone": i + 1, "state": state.name.lower()}
                for time_s, i, state in self.failsafes
            ],
            "landed": sum(p.phase is Phase.LANDED for p in self.pilots),
            "path_m": _round(float(self.flown_m.sum())),
            **self._findings(),
            **self._return(summary.collisions, summary.geofence_breaches),
            "drones": [
                {
                    "id": i + 1,
                    "x": _round(self.state.position[i, 0]),
                    "y": _round(self.state.position[i, 1]),
                    "z": _round(self.state.position[i, 2]),
                    "vx": _round(self.state.velocity[i, 0]),
                    "vy": _round(self.state.velocity[i, 1]),
                    "vz": _round(self.state.velocity[i, 2]),
                    "hdg": _round(float(heading[i])),
                    "batt": _round(100.0 * self.state.charge[i]),
                    "det": 0,
                    "failsafe": self.pilots[i].vigil.state.name.lower(),
                    "path_m": _round(self.flown_m[i]),
                }
                for i in range(s.drones)
            ],
        }

    def _return(self, collisions: int, geofence_breaches: int) -> dict[str, Any]:
        """The return as the bag gives it: by the same code, from the same ticks; null without a search."""
        if not self._search_track:
            return {"return_counts": None, "episode_return": None}
        times = np.array([stamp for stamp, _ in self._search_track]) / 1e9
        positions = np.array([place for _, place in self._search_track])
        found = self.sensing.scorer.found.values() if self.sensing is not None else ()
        charge, failsafes, phases = (np.array(column) for column in zip(*self._readings, strict=True))
        counts = Counts(
            new_cells=sweep(self.episode.world.area, times - times[0], positions).scanned_cells,
            confirmed_victims=len(found),
            triangulations=sum(f.views for f in found),
            idle_steps=idle_steps(times, positions),
            collisions=collisions,
            geofence_breaches=geofence_breaches,
            depleted=sum(depleted(charge[:, i], failsafes[:, i], phases[:, i]) for i in range(len(self.pilots))),
        )
        return {"return_counts": asdict(counts), "episode_return": episode_return(counts)}

    def _findings(self) -> dict[str, Any]:
        """What the reports came to; null where the episode had no radio."""
        if self.sensing is None:
            keys = ("detections", "false_alarms", "localization_error_m", "gdop", "time_to_first_detection_s")
            return {"victims": [], **dict.fromkeys(keys)}
        scorer = self.sensing.scorer
        begin = self.search_begin_s if math.isfinite(self.search_begin_s) else 0.0
        found = [scorer.found.get(k) for k in range(len(self.sensing.victims))]
        first = min((f for f in found if f is not None), key=lambda f: f.time_s, default=None)
        return {
            "victims": [
                {
                    "x": _round(device.track[0, 1]),
                    "y": _round(device.track[0, 2]),
                    "detected": f is not None,
                    "time_s": None if f is None else _round(max(f.time_s - begin, 0.0)),
                    "error_m": None if f is None else _round(f.error_m),
                    "final_error_m": None if f is None else _round(f.final_error_m),
                    "gdop": None if f is None else _round(f.gdop),
                    "views": None if f is None else f.views,
                }
                for device, f in zip(self.sensing.victims, found, strict=True)
            ],
            "detections": len(scorer.found),
            "false_alarms": len(scorer.false_alarms),
            "false_alarm_events": [
                {**asdict(alarm), "kind": self._kind(alarm.address)} for alarm in scorer.false_alarms.values()
            ],
            "localization_error_m": None if first is None else _round(first.error_m),
            "gdop": None if first is None else _round(first.gdop),
            "time_to_first_detection_s": None if first is None else _round(max(first.time_s - begin, 0.0)),
            "tracks": [
                {
                    "kind": self._kind(last.address),
                    "first": self._word(first_word),
                    "last": self._word(last),
                }
                for first_word, last in self.sensing.words()
            ],
            "gate": {name: _round(share) for name, share in self.sensing.gate_shares().items()},
            "frames_dropped": dict(sum((ears.filter.dropped for ears in self.sensing.listeners), start=Counter())),
        }

    def _word(self, report: Report) -> dict[str, Any]:
        assert self.sensing is not None
        scorer = self.sensing.scorer
        return {
            "time_s": _round(report.time_s),
            "confidence": _round(report.confidence),
            "correct": scorer.correct(report),
            "error_m": _round(scorer.distance(report)),
            "gdop": _round(report.gdop),
        }

    def _kind(self, address: int) -> str:
        assert self.sensing is not None
        return next((d.kind.name.lower() for d in self.sensing.devices if d.address == address), "unknown")


def _round(value: float | None) -> float | None:
    """Nine digits after the point: far below any sensor, and free of float noise in print."""
    return None if value is None else round(float(value), 9)


def _plain(event: Event) -> dict[str, Any]:
    fields = asdict(event)
    fields.update(kind=event.kind.value, phase=event.phase.value, a=event.a + 1)
    fields["b"] = event.b + 1 if event.kind.value in ("drone_drone", "near_miss") else event.b
    return {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}


def fly_episode(
    episode: Episode,
    bag: Path | None,
    watch: Callable[[Progress], None] | None = None,
    stop: Callable[[], str | None] | None = None,
    csi: bool = False,
) -> Record:
    """Fly one episode to its end and return its record; with ``bag``, leave a verified bag there.

    ``stop`` is asked once a simulated second; a reason ends the episode as INVALID with that reason and a good bag.
    ``csi`` puts raw frames into the bag too.
    ``watch`` is told once a simulated second, after all of that second was handed to the disk.
    """
    began = time.perf_counter()
    logbook = Logbook(episode, bag, csi) if bag is not None else None
    recording: Recording | None = None
    try:
        flight = Flight(episode, logbook)
        looped = time.perf_counter()
        while not flight.done:
            flight.advance()
            if flight.tick % 20 == 0:
                if stop is not None:
                    flight.invalid_reason = flight.invalid_reason or stop() or ""
                if not flight.done:
                    flight.report()
                if watch is not None:
                    collisions = flight.referee.summary().collisions
                    watch(Progress(flight.time_s, flight.search_time_s, flight.coverage.fraction, collisions))
        flight.finish()
        result = flight.result()
        if logbook is not None:
            recording = logbook.close()
    except BaseException:
        if logbook is not None:
            logbook.abandon()
        raise
    ended = time.perf_counter()
    run: dict[str, Any] = {
        "rtf": round(flight.time_s / (ended - looped), 2),
        "wall_s": round(ended - looped, 4),
        "setup_s": round(looped - began, 4),
        "bag": str(recording.path) if recording else None,
        "bag_bytes": recording.size_bytes if recording else None,
        "bag_messages": recording.messages if recording else None,
    }
    return Record(result, run)
