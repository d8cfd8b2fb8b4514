"""One row per episode, computed from its bag alone.

Truth is recorded at 20 Hz while the referee saw every 4 ms step. So counts (collisions, detections, false alarms),
times of reports and localisation errors are exact; scan times, path, separation and overlap carry a small sampling
error, and so does clearance to obstacles, which needs the world's geometry in the bag.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.arrays import Events
from sar_analysis.bags.reader import Bag, read_bag
from sar_analysis.bags.scene import least_clearance
from sar_analysis.metrics import motion
from sar_analysis.metrics.catalogue import COVERAGE_TIME_S, METRICS, of_missions
from sar_analysis.metrics.findings import (
    DECOY,
    DISPLACED,
    RIGHT,
    Adr149,
    Decoy,
    Findings,
    Issue,
    TrackReport,
    Victim,
    judge,
)
from sar_analysis.metrics.task import task_sha256
from sar_core.conduct import Conduct
from sar_core.reward import Counts, depleted, episode_return, idle_steps
from sar_core.sweep import SweptCoverage, sweep

Floats = NDArray[np.float64]

COVERED = 0.95
CURVE_STEP_S = 10.0
NESTED = (
    *("victims", "decoys", "issue_events", "track_reports", "adr149"),
    *("coverage_curve", "configuration", "measured", "conduct"),
)
LARGEST_GAP_NS = 275_000_000
"""Five ticks and a little. Between ticks farther apart nobody can say what the drones did."""
SEARCH, DONE = 2, 4
ISSUES = ("issues", "found", "displaced", "decoy_alarms")
RULES = "rules-"
"""Begins the name of what is no set but rules, by which every episode's layout is drawn."""
DRONE_DRONE, DRONE_OBSTACLE, DRONE_GROUND, GEOFENCE, NEAR_MISS = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class EpisodeMetrics:
    """A tidy row. None means not defined: never found, never reached, flown without radio, no second drone."""

    episode_id: str
    tier: str
    world: str
    vehicle: str
    pattern: str
    profile: str
    seed: int
    episode: int
    episode_set: str | None
    config_sha256: str
    world_sha256: str
    version: str
    sigma: float | None
    kappa: float | None
    drones: int
    victim_absent: bool
    configuration: dict[str, Any]
    """Every setting of the episode as the bag states it: what a table must not mix and a reporting card must name."""
    valid: bool
    invalid_reason: str | None
    notes: tuple[str, ...]
    flight_time_s: float
    flight_hours: float
    """Hours flown by all drones together, from the first tick to the last."""
    search_time_s: float
    coverage_240s: float | None
    coverage: float | None
    coverage_recorded: float
    """What the referee said last, for comparison with our own figure."""
    coverage_curve: tuple[float, ...]
    """Fraction scanned after 0, 10, 20 ... s of search."""
    time_to_95_s: float | None
    overlap_ratio: float | None
    victims: tuple[Victim, ...]
    decoys: tuple[Decoy, ...]
    issue_events: tuple[Issue, ...]
    track_reports: tuple[TrackReport, ...]
    adr149: Adr149 | None
    issues: int | None
    detections: int | None
    displaced: int | None
    false_alarms: int | None
    """Decoy alarms; of a record of schema 1, reports farther than 10 m from every victim."""
    time_to_first_detection_s: float | None
    localization_error_m: float | None
    """Of the victim issued first, at its issue; without a cut."""
    gdop: float | None
    """The constellation's at that issue."""
    collisions: int
    collisions_drone_drone: int
    collisions_drone_obstacle: int
    collisions_drone_ground: int
    near_misses: int
    geofence_breaches: int
    min_separation_m: float | None
    min_clearance_m: float | None
    """Hull to obstacle; None without obstacles and for bags that do not hold their world."""
    path_m: float
    energy_batteries: float
    """Charge spent by all drones, in full batteries; charge lost to an injected fault counts as spent."""
    yaw_rate_rms_rps: float | None
    yaw_rate_p95_rps: float | None
    jerk_rms_mps3: float | None
    jerk_mean_mps3: float | None
    path_shares: tuple[float, ...]
    cell_shares: tuple[float, ...]
    """Of all cells scanned, the share each drone was first to scan."""
    failsafe_entries: int
    """As seen twice a second: one shorter than that may be missed."""
    return_counts: Counts | None
    episode_return: float | None
    area_m2: float = 0.0
    """Of the search area; 0 where it is not known."""
    gate_open: float | None = None
    """Share of all frames that passed the phase gate; None for a bag, which holds the gates' changes only."""
    schema: int = 2
    """By whose definitions reports were judged: 1 for records from before issues were judged by transmitter."""
    layout_number: int | None = None
    """Of its layout in the episode set; None where neither bag nor record tells."""
    task_sha256: str = ""
    """What was to be flown whatever flies it (task.py); empty for a record, which does not hold it."""
    measured: Mapping[str, float | None] = field(default_factory=dict)
    """What the catalogue's own functions measured in the bag, by key."""
    conduct: Conduct | None = None
    """How the search was flown, by the constants it names; None for a bag, whose terms ask for constants."""

    @property
    def key(self) -> str:
        """Names one flown episode among all: other noise, another profile or another tier is another key."""
        return f"{self.tier}/{self.config_sha256}/{self.seed}/{self.episode}"

    @cached_property
    def layout(self) -> tuple[Hashable, ...]:
        """What missions share that were flown on one layout, whatever their seed, pattern, noise level or tier.

        A set flies a layout at several noise levels, each time as another episode, with victims and without. Of what a
        mission tells only the wind's direction belongs to the layout in each of them; in still air the victims' places
        do, and without either the episode must stand for it. Apart from sets every episode has a layout of its own.
        """
        place = (self.world, self.episode_set)
        if self.layout_number is not None:
            return *place, self.layout_number
        if not isinstance(self.episode_set, str) or self.episode_set.startswith(RULES):
            return *place, self.episode
        wind = self.configuration.get("wind_mps")
        if isinstance(wind, (list, tuple)) and any(wind):
            return *place, round(math.atan2(wind[1], wind[0]), 3)
        victims = tuple(sorted((round(v.x_m, 1), round(v.y_m, 1)) for v in self.victims))
        return *place, victims or self.episode

    @property
    def undetected(self) -> int:
        """Victims never found."""
        return sum(not victim.detected for victim in self.victims)

    def row(self) -> dict[str, Any]:
        """Plain values only: what has many values is counted or joined."""
        plain: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in NESTED:
                continue
            if isinstance(value, Counts):
                plain.update({f"return_{name}": count for name, count in vars(value).items()})
            elif item.name != "return_counts":
                plain[item.name] = " ".join(map(str, value)) if isinstance(value, tuple) else value
        plain["victims"] = len(self.victims)
        return {**plain, **{m.key: m.at(self) for m in of_missions() if not m.column}}


def episode_metrics(bag: Bag | Path) -> EpisodeMetrics:
    """All metrics of one episode."""
    if isinstance(bag, Path):
        bag = read_bag(bag)
    info, truth, status = bag.info, bag.truth, bag.status
    times = truth.times_s
    search = search_span(bag)
    begin_s = float(times[search.start]) if search is not None else 0.0
    cover = None if search is None else sweep(info.area_m, times[search] - begin_s, truth.position[search])
    end_s = float(times[search.stop - 1]) if search is not None else math.nan
    span = (math.nan if search is None else begin_s, end_s)
    findings = None if bag.devices is None else judge(bag.reports, bag.devices, bag.hearings, *span)
    paths = motion.path_lengths(truth.position)
    approach = motion.closest_approach(times, truth.position)
    flight_s = float(times[-1])
    reason = _invalid_reason(bag)
    return EpisodeMetrics(
        **_identity(bag),
        valid=reason is None,
        invalid_reason=reason,
        notes=bag.notes + _disagreements(bag, cover, findings),
        flight_time_s=flight_s,
        flight_hours=flight_s * info.drones / 3600.0,
        search_time_s=float(status.search_time_s[-1]),
        coverage_recorded=float(status.coverage[-1]),
        **_coverage(cover, float(status.search_time_s[-1])),
        **_findings(findings),
        **_contacts(bag.events),
        min_separation_m=None if approach is None else approach.distance_m,
        min_clearance_m=None if bag.world is None else least_clearance(bag.world, truth.position),
        path_m=float(paths.sum()),
        energy_batteries=sum(motion.charge_used(h.battery_fraction) for h in bag.health),
        **_comfort(bag, search),
        path_shares=_shares(paths),
        failsafe_entries=sum(motion.entries(h.failsafe) for h in bag.health),
        **_return(bag, search, cover, findings),
        measured={m.key: m.measure(bag) for m in METRICS.values() if m.measure is not None},
    )


def search_span(bag: Bag) -> slice | None:
    """The ticks of truth from all drones at altitude to the end of search; None if there was no search.

    The referee's search clock says how long ago the search began; the nearest tick to that is when it did.
    """
    status, stamps = bag.status, bag.truth.stamps_ns
    searching = np.flatnonzero(status.phase == SEARCH)
    if not len(searching):
        return None
    k = int(searching[0])
    begin_ns = int(status.stamps_ns[k]) - round(float(status.search_time_s[k]) * 1e9)
    end_ns = begin_ns + round(float(status.search_time_s.max()) * 1e9)
    first, last = (int(np.argmin(np.abs(stamps - at))) for at in (begin_ns, end_ns))
    return slice(first, last + 1)


def _invalid_reason(bag: Bag) -> str | None:
    """Why the episode does not count: the referee's reason, or what only the finished bag can show."""
    status = bag.status
    if not status.valid[-1]:
        return status.invalid_reason[-1] or "no_reason_given"
    if status.phase[-1] != DONE:
        return "unfinished"
    gaps = np.diff(bag.truth.stamps_ns)
    return "truth_gap" if gaps.size and int(gaps.max()) > LARGEST_GAP_NS else None


def _identity(bag: Bag) -> dict[str, Any]:
    info, config = bag.info, bag.configuration
    radio = config.get("radio") is not None
    return {
        "episode_id": info.episode_id,
        "tier": info.tier,
        "world": info.world,
        "vehicle": info.vehicle,
        "pattern": info.pattern,
        "profile": str(config.get("name", "")),
        "seed": info.seed,
        "episode": info.episode,
        "episode_set": config.get("episode_set"),
        "config_sha256": info.config_sha256,
        "world_sha256": info.world_sha256,
        "version": bag.versions.get("version", ""),
        "sigma": float(config["sigma"]) if radio and "sigma" in config else None,
        "kappa": float(config["kappa"]) if radio and "kappa" in config else None,
        "drones": info.drones,
        "area_m2": (info.area_m[2] - info.area_m[0]) * (info.area_m[3] - info.area_m[1]),
        "victim_absent": bool(config.get("victim_absent", False)),
        "configuration": config,
        "layout_number": bag.layout,
        "task_sha256": task_sha256(config),
    }


def _disagreements(bag: Bag, cover: SweptCoverage | None, findings: Findings | None) -> tuple[str, ...]:
    """Where the referee's own counters and our reading of its events part: a bag that lost messages shows here."""
    said = []
    counted = _contacts(bag.events)
    for name, stated in (("collisions", bag.status.collisions), ("near_misses", bag.status.near_misses)):
        if counted[name] != int(stated[-1]):
            said.append(f"{name}: {counted[name]} events, but the last status says {int(stated[-1])}")
    if findings is not None and bag.status.issues is not None:
        ours = (len(findings.issues), *map(findings.count, (RIGHT, DISPLACED, DECOY)))
        for name, found, stated in zip(ISSUES, ours, bag.status.issues[-1].tolist(), strict=True):
            if found != stated:
                said.append(f"{name}: {found} by the reports, but the last status says {stated}")
    if cover is not None:
        cells = cover.first_scan_s.size
        slack = max(2, cells // 1000)
        if round(abs(cover.fraction - float(bag.status.coverage[-1])) * cells) > slack:
            said.append(f"coverage: {cover.fraction:.4f} from truth, {bag.status.coverage[-1]:.4f} in the last status")
        last = bag.grid.scanned[-1]
        parted = int(np.sum(last != np.isfinite(cover.first_scan_s))) if last.shape == cover.finder.shape else cells
        if parted > slack:
            said.append(f"coverage map: {parted} of {cells} cells differ from the last map in the bag")
    return tuple(said)


def _coverage(cover: SweptCoverage | None, search_s: float) -> dict[str, Any]:
    if cover is None:
        undefined = dict.fromkeys(("coverage_240s", "coverage", "time_to_95_s", "overlap_ratio"))
        return {**undefined, "coverage_curve": (), "cell_shares": ()}
    return {
        "coverage_240s": cover.at(COVERAGE_TIME_S),
        "coverage": cover.fraction,
        "coverage_curve": tuple(cover.at(k * CURVE_STEP_S) for k in range(int(search_s / CURVE_STEP_S) + 1)),
        "time_to_95_s": cover.time_to(COVERED),
        "overlap_ratio": cover.overlap_ratio,
        "cell_shares": _shares(cover.cells_by_drone.astype(np.float64)),
    }


def _findings(findings: Findings | None) -> dict[str, Any]:
    keys = ("adr149", "issues", "detections", "displaced", "false_alarms", "localization_error_m", "gdop")
    if findings is None:
        return {
            **dict.fromkeys(("victims", "decoys", "issue_events", "track_reports"), ()),
            **dict.fromkeys((*keys, "time_to_first_detection_s")),
        }
    issued, found = findings.first_issued, findings.first_found
    return {
        "victims": findings.victims,
        "decoys": findings.decoys,
        "issue_events": findings.issues,
        "track_reports": findings.track_reports,
        "adr149": findings.adr149,
        "issues": len(findings.issues),
        "detections": findings.count(RIGHT),
        "displaced": findings.count(DISPLACED),
        "false_alarms": findings.count(DECOY),
        "localization_error_m": None if issued is None else issued.error_m,
        "gdop": None if issued is None else issued.constellation_gdop,
        "time_to_first_detection_s": None if found is None else found.time_s,
    }


def _contacts(events: Events) -> dict[str, Any]:
    """Contacts by kind: begin and end of one share an id, so ids are counted."""

    def count(kind: int) -> int:
        return len(np.unique(events.event_id[events.kind == kind]))

    by_kind = [count(kind) for kind in (DRONE_DRONE, DRONE_OBSTACLE, DRONE_GROUND)]
    return {
        "collisions": sum(by_kind),
        "collisions_drone_drone": by_kind[0],
        "collisions_drone_obstacle": by_kind[1],
        "collisions_drone_ground": by_kind[2],
        "near_misses": count(NEAR_MISS),
        "geofence_breaches": count(GEOFENCE),
    }


def _comfort(bag: Bag, search: slice | None) -> dict[str, Any]:
    """How gently the swarm flew during the search."""
    if search is None:
        return dict.fromkeys(("yaw_rate_rms_rps", "yaw_rate_p95_rps", "jerk_rms_mps3", "jerk_mean_mps3"))
    truth = bag.truth
    jerk = motion.jerks(truth.times_s[search], truth.velocity[search])
    yaw = np.abs(motion.yaw_rates(truth.attitude[search], truth.angular_velocity[search]))
    return {
        "yaw_rate_rms_rps": motion.rms(yaw),
        "yaw_rate_p95_rps": float(np.quantile(yaw, 0.95)) if yaw.size else None,
        "jerk_rms_mps3": motion.rms(jerk),
        "jerk_mean_mps3": float(jerk.mean()) if jerk.size else None,
    }


def _shares(amounts: Floats) -> tuple[float, ...]:
    total = float(amounts.sum())
    return tuple(float(a) / total for a in amounts) if total > 0.0 else ()


def _return(bag: Bag, search: slice | None, cover: SweptCoverage | None, findings: Findings | None) -> dict[str, Any]:
    if search is None or cover is None:
        return {"return_counts": None, "episode_return": None}
    contacts = _contacts(bag.events)
    times = bag.truth.times_s[search]
    victims = () if findings is None else findings.victims
    counts = Counts(
        new_cells=cover.scanned_cells,
        confirmed_victims=sum(v.detected for v in victims),
        triangulations=sum(v.views or 0 for v in victims if v.detected),
        idle_steps=idle_steps(times, bag.truth.position[search]),
        collisions=contacts["collisions"],
        geofence_breaches=contacts["geofence_breaches"],
        depleted=sum(depleted(h.battery_fraction, h.failsafe, h.phase) for h in bag.health),
    )
    return {"return_counts": counts, "episode_return": episode_return(counts)}
