"""Every metric once: what it is called and means, which way is better, and how missions become a figure.

Tables, figures, page, CSV, LaTeX, the JSON schema, docs/metrics.md and registrations read this. A metric is added here,
with the function that gives it, and nowhere else: `measure` takes it from a bag, `value` from what is known of a
mission already, and `counts`, `samples` or `timed` give what a mission brings to a figure of many, so that missions of
one layout can be taken together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from sar_core.errors import InputError

if TYPE_CHECKING:
    from sar_analysis.bags.reader import Bag
    from sar_analysis.metrics.metrics import EpisodeMetrics

COVERAGE_TIME_S = 240.0
Better = Literal["higher", "lower", "neither"]
Aggregate = Literal[
    "share", "rate", "quantile", "median time", "restricted mean", "mean", "least", "paired mean", "none"
]
Value = Callable[["EpisodeMetrics"], float | None]
Count = tuple[int, float]
Watched = tuple[float | None, float]
INTERVALS: dict[Aggregate, str] = {
    "share": "over layouts: bootstrap; rare: Korn-Graubard; beside it Clopper-Pearson",
    "rate": "over layouts: bootstrap; rare: Poisson on the effective exposure; beside it exact Poisson",
    "quantile": "over layouts: bootstrap; few values: order statistics on the effective sample; beside it theirs",
    "median time": "over layouts: bootstrap of Kaplan-Meier's median and of the restricted mean; few times: "
    "Kaplan-Meier, log-log",
    "restricted mean": "over layouts: bootstrap",
    "mean": "over layouts: bootstrap; of the IQM: bootstrap over layouts, jackknife over seeds and over both, t, "
    "bootstrap of both from ten seeds on",
    "least": "none: an extreme",
    "paired mean": "jackknife over seeds, or over seeds and layouts, t",
    "none": "none",
}
"""By which interval each kind of figure is given."""


@dataclass(frozen=True)
class Metric:
    """One metric. `unit` is the value's own; `of` says what a figure's n counts, or per what a rate is.

    The functions are of one mission: `measure` and `value` give its number, None where it has none; `counts` its
    successes and trials of a share, or events and exposure of a rate, None where it does not count; `samples` its
    values of those a quantile is taken of; `timed` pairs of time and end of watch [s], the time None where it never
    came.
    """

    key: str
    label: str
    definition: str
    source: str
    unit: str = ""
    share: bool = False
    better: Better = "neither"
    aggregate: Aggregate = "none"
    of: str = "missions"
    column: bool = False
    """Whether it is a field of EpisodeMetrics."""
    measure: Callable[[Bag], float | None] | None = None
    value: Value | None = None
    counts: Callable[[EpisodeMetrics], Count | None] | None = None
    samples: Callable[[EpisodeMetrics], list[float]] | None = None
    timed: Callable[[EpisodeMetrics], list[Watched]] | None = None
    quantile: float = 0.5
    compared: bool = False
    """Whether patterns are held against each other on its IQM."""
    open_ended: bool = False
    """A mission that missed has no number: it counts as beyond every number, never as left out."""
    mixed: bool = False
    """At one mission without victims for each with, however many there are of either."""
    since: int = 1
    """The first schema of records that holds it."""
    signed: bool = False
    places: int | None = None
    """Digits behind the point; None: by the unit."""
    listed: Literal["no", "json", "page"] = "page"
    """Where missions are listed one by one: in results.json, on the page as well, or in the CSV alone."""

    @property
    def of_mission(self) -> bool:
        """Whether a mission by itself has a value: a column of the table."""
        return self.column or self.value is not None or self.measure is not None

    @property
    def sensing(self) -> bool:
        """Whether it comes of reports, which a swarm without radio does not make."""
        return self.source in (REPORTS, ADR149)

    @property
    def of_victims(self) -> bool:
        return self.of in ("victims", "issued victims", "detected victims")

    @property
    def interval(self) -> str:
        return INTERVALS[self.aggregate]

    @property
    def heading(self) -> str:
        """The label, with the unit where values are written without it."""
        return f"{self.label}, {self.unit}" if self.unit not in ("", "s", "m") else self.label

    @property
    def axis(self) -> str:
        """The label of an axis; a share is drawn in percent."""
        unit = "%" if self.share else self.unit
        return f"{self.label} ({unit})" if unit else self.label

    @property
    def bounds(self) -> tuple[float, float]:
        """What no value can be beyond."""
        return float("-inf") if self.signed else 0.0, 1.0 if self.share else float("inf")

    def at(self, mission: EpisodeMetrics) -> float | None:
        """A mission's own value."""
        if self.value is not None:
            return self.value(mission)
        if self.column:
            own: float | None = getattr(mission, self.key)
            return own
        if self.measure is None:
            raise InputError(f"{self.key}: only many missions have it, not one")
        return mission.measured.get(self.key)


TRUTH, REFEREE, REPORTS, STATUS = "true states", "referee", "reports", "drones' status"
RETURN = "weights of ADR-148"
ADR149 = "reports, as ADR-149 section 4.1 defines it"
ISSUES = 2
"""Since this schema of records reports are judged by transmitter, as issues."""


def _with_detection(e: EpisodeMetrics) -> Count | None:
    return None if e.false_alarms is None or not e.victims else (int(bool(e.detections)), 1)


def _found(e: EpisodeMetrics) -> Count:
    return sum(v.detected for v in e.victims), len(e.victims)


def _found_in_time(e: EpisodeMetrics) -> Count:
    in_time = (v.time_s is not None and v.time_s <= COVERAGE_TIME_S for v in e.victims)
    return sum(in_time), len(e.victims)


def _settled(e: EpisodeMetrics) -> Count | None:
    if e.schema < ISSUES:
        return None
    return sum(v.settled_s is not None for v in e.victims), len(e.victims)


def _displaced(e: EpisodeMetrics) -> Count | None:
    issued = sum(v.issued_s is not None for v in e.victims)
    return None if e.displaced is None else (e.displaced, issued)


def _with_alarm(e: EpisodeMetrics) -> Count | None:
    return None if e.false_alarms is None else (int(e.false_alarms > 0), 1)


def _absent_with_alarm(e: EpisodeMetrics) -> Count | None:
    return _with_alarm(e) if e.victim_absent else None


def _is_exposed(e: EpisodeMetrics) -> bool | None:
    """Whether drones heard a decoy that they were not told of; None where that is not known."""
    if e.false_alarms is None or e.schema < ISSUES or any(d.listed is None for d in e.decoys):
        return None
    return any(d.exposed and not d.listed for d in e.decoys)


def _exposed(e: EpisodeMetrics) -> Count | None:
    exposed = _is_exposed(e)
    return None if exposed is None else (int(exposed), 1)


def _exposed_with_alarm(e: EpisodeMetrics) -> Count | None:
    return _with_alarm(e) if _is_exposed(e) else None


def _alarms(e: EpisodeMetrics, hourly: bool) -> Count | None:
    return None if e.false_alarms is None else (e.false_alarms, e.flight_hours if hourly else 1)


def _alarms_per_decoy_hour(e: EpisodeMetrics) -> Count | None:
    if _is_exposed(e) is None:
        return None
    risky = [d for d in e.decoys if d.exposed and not d.listed]
    return sum(d.alarm_s is not None for d in risky), sum(d.at_risk_s(e.search_time_s) for d in risky) / 3600.0


def _wrong(e: EpisodeMetrics) -> Count | None:
    return None if e.displaced is None or e.false_alarms is None else (e.displaced + e.false_alarms, 1)


def _right_of_issues(e: EpisodeMetrics) -> Count | None:
    return None if e.issues is None or e.detections is None else (e.detections, e.issues)


def _errors(e: EpisodeMetrics, name: str) -> list[float]:
    return [error for v in e.victims if (error := getattr(v, name)) is not None]


def _as_adr149(e: EpisodeMetrics, name: str, absent: bool) -> Count | None:
    if e.adr149 is None or e.victim_absent is not absent:
        return None
    return int(getattr(e.adr149, name)), 1


def _adr149_errors(e: EpisodeMetrics) -> list[float]:
    return [] if e.adr149 is None else list(e.adr149.errors_m)


def _adr149_gdop(e: EpisodeMetrics) -> list[float]:
    return [] if e.adr149 is None else [value for value in e.adr149.gdop if value is not None]


def _adr149_time(e: EpisodeMetrics) -> list[Watched]:
    if e.adr149 is None or e.victim_absent:
        return []
    return [(e.adr149.time_to_first_detection_s, e.flight_time_s)]


def _events(e: EpisodeMetrics, name: str, hourly: bool = False) -> Count:
    return getattr(e, name), e.flight_hours if hourly else 1


def _with_collision(e: EpisodeMetrics) -> Count:
    return int(e.collisions > 0), 1


def _time(e: EpisodeMetrics, name: str, sought: bool) -> list[Watched]:
    return [(getattr(e, name), e.search_time_s)] if e.victims or not sought else []


def _victim_times(e: EpisodeMetrics) -> list[Watched]:
    return [(v.time_s, e.search_time_s) for v in e.victims]


def _issued_times(e: EpisodeMetrics) -> list[Watched]:
    return [] if e.schema < ISSUES or e.false_alarms is None else _victim_times(e)


def _per_mission(name: str, label: str, definition: str, source: str = REFEREE) -> Metric:
    return Metric(
        f"{name}_per_mission",
        label,
        definition,
        source,
        better="lower",
        aggregate="rate",
        of="mission",
        counts=partial(_events, name=name),
    )


_ALL = (
    Metric(
        "missions_with_detection",
        "missions with a victim found",
        "missions with victims in which at least one was found: its device's issue was within 10 m of it",
        REPORTS,
        share=True,
        better="higher",
        aggregate="share",
        counts=_with_detection,
    ),
    Metric(
        "victims_found",
        "victims found",
        "victims whose issue (the swarm's first confident report of their device inside the search) was within 10 m",
        REPORTS,
        share=True,
        better="higher",
        aggregate="share",
        of="victims",
        counts=_found,
    ),
    Metric(
        "victims_found_240s",
        "victims found within 240 s",
        "victims whose issue was within 10 m and within 240 s of search",
        REPORTS,
        share=True,
        better="higher",
        aggregate="share",
        of="victims",
        counts=_found_in_time,
    ),
    Metric(
        "victims_settled",
        "victims settled",
        "victims whose confident reports stayed within 10 m from some time to the end of the search, found at issue or "
        "not: nobody in the field knows when",
        REPORTS,
        since=ISSUES,
        share=True,
        better="higher",
        aggregate="share",
        of="victims",
        counts=_settled,
    ),
    Metric(
        "displaced_issues",
        "displaced",
        "issued victims whose issue was more than 10 m off: wrong, but no false alarm",
        REPORTS,
        since=ISSUES,
        share=True,
        better="lower",
        aggregate="share",
        of="issued victims",
        counts=_displaced,
    ),
    Metric(
        "exposed_missions_with_false_alarm",
        "decoy alarm where a decoy was exposed",
        "missions in which drones heard a decoy that is on no list, and that had a decoy alarm (an issue whose "
        "transmitter is no victim's): the headline, which no choice of episodes can improve",
        REPORTS,
        since=ISSUES,
        share=True,
        better="lower",
        aggregate="share",
        of="missions with an exposed decoy",
        counts=_exposed_with_alarm,
    ),
    Metric(
        "false_alarms_per_decoy_hour",
        "decoy alarms per decoy-hour",
        "decoy alarms of unlisted decoys, by the hours of search from when each was heard until it was issued",
        REPORTS,
        since=ISSUES,
        better="lower",
        aggregate="rate",
        of="decoy-hour",
        counts=_alarms_per_decoy_hour,
    ),
    Metric(
        "absent_missions_with_false_alarm",
        "decoy alarm, victims absent",
        "missions without victims that had a decoy alarm, at the episode set's prevalence of decoys",
        REPORTS,
        share=True,
        better="lower",
        aggregate="share",
        of="victim-absent missions",
        counts=_absent_with_alarm,
    ),
    Metric(
        "missions_with_exposed_decoy",
        "missions with an exposed decoy",
        "missions in which drones heard a decoy that is on no list: the set's prevalence",
        REPORTS,
        since=ISSUES,
        share=True,
        aggregate="share",
        counts=_exposed,
    ),
    Metric(
        "missions_with_false_alarm",
        "missions with a decoy alarm",
        "missions with at least one decoy alarm, whether a decoy was heard or not",
        REPORTS,
        share=True,
        better="lower",
        aggregate="share",
        counts=_with_alarm,
    ),
    Metric(
        "false_alarms_per_mission",
        "decoy alarms per mission",
        "decoy alarms of all missions flown with radio, by their number",
        REPORTS,
        better="lower",
        aggregate="rate",
        of="mission",
        counts=partial(_alarms, hourly=False),
    ),
    Metric(
        "false_alarms_per_hour",
        "decoy alarms per flight hour",
        "decoy alarms of all missions flown with radio, by the hours flown by all drones together",
        REPORTS,
        better="lower",
        aggregate="rate",
        of="flight hour",
        counts=partial(_alarms, hourly=True),
    ),
    Metric(
        "wrong_issues_per_mission",
        "wrong issues per mission",
        "displaced issues and decoy alarms of all missions flown with radio, by their number",
        REPORTS,
        since=ISSUES,
        better="lower",
        aggregate="rate",
        of="mission",
        counts=_wrong,
    ),
    Metric(
        "ppv",
        "right issues of all issues (PPV)",
        "issues within 10 m of the victim whose device they report, of all issues, at one mission without victims for "
        "each mission with: where other numbers are valid, missions are weighted",
        REPORTS,
        since=ISSUES,
        share=True,
        better="higher",
        aggregate="share",
        of="issues",
        counts=_right_of_issues,
        mixed=True,
    ),
    *(
        Metric(
            f"{prefix}cep{percent}_m",
            f"CEP{percent} {which}",
            f"the error that {percent} % of the issued victims stay within {when}, without a cut",
            REPORTS,
            unit="m",
            better="lower",
            aggregate="quantile",
            of="issued victims",
            samples=partial(_errors, name=name),
            quantile=percent / 100,
        )
        for prefix, which, when, name in (
            ("", "at issue", "at their issue", "error_m"),
            ("final_", "at the end", "at their last confident report of the search", "final_error_m"),
        )
        for percent in (50, 95)
    ),
    Metric(
        "adr149_detection_rate",
        "detection rate as ADR-149 has it",
        "missions with victims in which a victim's device had a confident report at any time and any distance",
        ADR149,
        since=ISSUES,
        share=True,
        better="higher",
        aggregate="share",
        of="missions with victims",
        counts=partial(_as_adr149, name="detected", absent=False),
    ),
    Metric(
        "adr149_false_alarm_rate",
        "false-alarm rate as ADR-149 has it",
        "missions without victims in which any transmitter had a confident report at any time",
        ADR149,
        since=ISSUES,
        share=True,
        better="lower",
        aggregate="share",
        of="victim-absent missions",
        counts=partial(_as_adr149, name="confident", absent=True),
    ),
    *(
        Metric(
            f"adr149_cep{percent}_m",
            f"CEP{percent} as ADR-149 has it",
            f"the error that {percent} % of the victims with a confident report stay within at the first one, of the "
            "whole mission",
            ADR149,
            since=ISSUES,
            unit="m",
            better="lower",
            aggregate="quantile",
            of="detected victims",
            samples=_adr149_errors,
            quantile=percent / 100,
        )
        for percent in (50, 95)
    ),
    Metric(
        "adr149_gdop",
        "GDOP as ADR-149 has it",
        "median GDOP of the constellation of contributing drones at the first confident report, where it is defined",
        ADR149,
        since=ISSUES,
        better="lower",
        aggregate="quantile",
        of="detected victims",
        samples=_adr149_gdop,
    ),
    Metric(
        "adr149_time_to_first_detection_s",
        "time to first detection as ADR-149 has it",
        "from the start of the mission, take-off included, to the first confident report of a victim's device",
        ADR149,
        since=ISSUES,
        unit="s",
        better="lower",
        aggregate="median time",
        timed=_adr149_time,
    ),
    Metric(
        "missions_with_collision",
        "missions with a collision",
        "missions with at least one collision",
        REFEREE,
        share=True,
        better="lower",
        aggregate="share",
        counts=_with_collision,
    ),
    Metric(
        "collisions_per_hour",
        "collisions per flight hour",
        "collisions by the hours flown by all drones together",
        REFEREE,
        better="lower",
        aggregate="rate",
        of="flight hour",
        counts=partial(_events, name="collisions", hourly=True),
    ),
    _per_mission("collisions", "collisions per mission", "collisions of all missions by their number"),
    *(
        _per_mission(
            f"collisions_drone_{other}",
            f"drone-{other} collisions per mission",
            f"collisions of a drone with {what} by the number of missions",
        )
        for other, what in (("drone", "another"), ("obstacle", "an obstacle"), ("ground", "the ground"))
    ),
    _per_mission("near_misses", "near misses per mission", "near misses by the number of missions"),
    _per_mission("geofence_breaches", "geofence breaches per mission", "breaches by the number of missions"),
    _per_mission("failsafe_entries", "failsafes per mission", "failsafes entered by the number of missions", STATUS),
    Metric(
        "mean_localization_error_m",
        "localisation error",
        "mean error of a mission's victims at issue, more than 50 m and one never issued as 50 m",
        REPORTS,
        since=ISSUES,
        unit="m",
        aggregate="paired mean",
        better="lower",
    ),
    Metric(
        "optimality_gap",
        "optimality gap",
        "how far the return stays below the oracle's on the same episode, as a part of it; 0 beyond it",
        "Agarwal et al. 2021, section 4.3, with an oracle's return as 1",
        aggregate="paired mean",
        better="lower",
    ),
    Metric(
        "improvement",
        "probability of improvement",
        "chance that the first of two patterns does better on the same seed and episode, ties half",
        "Agarwal et al. 2021, equation 1",
        share=True,
        aggregate="paired mean",
        better="higher",
    ),
    Metric(
        "coverage_240s",
        "coverage at 240 s",
        "share of 5 m cells whose centre came within 14 m of a drone's true position by 240 s of search",
        TRUTH,
        share=True,
        better="higher",
        aggregate="mean",
        compared=True,
        column=True,
    ),
    Metric(
        "coverage",
        "coverage",
        "share of 5 m cells whose centre came within 14 m of a drone's true position by the end of the search",
        TRUTH,
        share=True,
        better="higher",
        listed="no",
        column=True,
    ),
    Metric(
        "coverage_recorded",
        "coverage as recorded",
        "coverage as the recorder said it last",
        REFEREE,
        share=True,
        better="higher",
        listed="no",
        column=True,
    ),
    Metric(
        "collisions",
        "collisions",
        "contacts of a drone with a drone, an obstacle or the ground, each counted once however long it lasted",
        REFEREE,
        better="lower",
        column=True,
    ),
    *(
        Metric(
            f"collisions_drone_{other}",
            f"drone-{other} collisions",
            f"collisions of a drone with {what}",
            REFEREE,
            better="lower",
            listed="no",
            column=True,
        )
        for other, what in (("drone", "another"), ("obstacle", "an obstacle"), ("ground", "the ground"))
    ),
    Metric(
        "near_misses",
        "near misses",
        "approaches of two drones' centres to between 1.5 and 3 m, each counted once",
        REFEREE,
        better="lower",
        column=True,
    ),
    Metric(
        "geofence_breaches",
        "geofence breaches",
        "departures of a drone from the fence, each counted once",
        REFEREE,
        better="lower",
        listed="no",
        column=True,
    ),
    Metric(
        "false_alarms",
        "decoy alarms",
        "issues whose transmitter is no victim's",
        REPORTS,
        better="lower",
        column=True,
    ),
    Metric(
        "detections",
        "victims found, number",
        "victims whose issue was within 10 m",
        REPORTS,
        better="higher",
        column=True,
    ),
    Metric(
        "issues",
        "issues",
        "transmitters with a confident report inside the search, each counted once",
        REPORTS,
        listed="json",
        column=True,
    ),
    Metric(
        "displaced",
        "displaced issues",
        "issues of a victim's device more than 10 m off",
        REPORTS,
        better="lower",
        listed="json",
        column=True,
    ),
    Metric(
        "localization_error_m",
        "error of the first issued",
        "horizontal error at issue of the victim issued first, without a cut; empty: none issued",
        REPORTS,
        unit="m",
        better="lower",
        open_ended=True,
        column=True,
    ),
    Metric(
        "gdop",
        "GDOP",
        "of the drones that had just observed it, at issue of the victim issued first; empty: undefined",
        REPORTS,
        better="lower",
        open_ended=True,
        column=True,
    ),
    Metric(
        "time_to_first_detection_s",
        "time to first detection",
        "search time at which the first victim was found; empty: none found",
        REPORTS,
        unit="s",
        better="lower",
        aggregate="median time",
        timed=partial(_time, name="time_to_first_detection_s", sought=True),
        open_ended=True,
        column=True,
    ),
    Metric(
        "time_to_each_victim_s",
        "time to each victim",
        "search time at which a victim was found; one that was not is censored at the search's end",
        REPORTS,
        unit="s",
        better="lower",
        aggregate="median time",
        of="victims",
        timed=_victim_times,
    ),
    Metric(
        "mean_time_to_victim_s",
        "mean time to a victim",
        "mean search time until a victim was found, up to 240 s or the longest search if that is shorter; one never "
        "found counts as that long",
        REPORTS,
        unit="s",
        since=ISSUES,
        better="lower",
        aggregate="restricted mean",
        of="victims",
        timed=_issued_times,
    ),
    Metric(
        "time_to_95_s",
        "time to 95 % coverage",
        "search time at which 95 % of the cells are scanned; empty: never",
        TRUTH,
        unit="s",
        better="lower",
        aggregate="median time",
        timed=partial(_time, name="time_to_95_s", sought=False),
        open_ended=True,
        listed="json",
        column=True,
    ),
    Metric(
        "overlap_ratio",
        "overlap",
        "share of the path that brings nothing to the cell beneath: scanned before this pass over it began, or more "
        "than 28 m of path ago",
        TRUTH,
        share=True,
        better="lower",
        aggregate="mean",
        listed="json",
        column=True,
    ),
    Metric(
        "min_separation_m",
        "least separation",
        "least distance between two drones' centres over the whole flight, along straight legs between ticks",
        TRUTH,
        unit="m",
        better="higher",
        aggregate="least",
        listed="json",
        column=True,
    ),
    Metric(
        "min_clearance_m",
        "least clearance",
        "least distance from a drone's hull to an obstacle over the whole flight, take-off and landing included, the "
        "ground not (negative: inside; empty: no obstacles, or a bag that does not hold its world)",
        TRUTH,
        unit="m",
        better="higher",
        signed=True,
        listed="no",
        column=True,
    ),
    Metric(
        "search_time_s",
        "search time",
        "from all drones at altitude to the end of the search",
        REFEREE,
        unit="s",
        listed="json",
        column=True,
    ),
    Metric(
        "flight_time_s", "flight time", "from the first tick to the last", TRUTH, unit="s", listed="json", column=True
    ),
    Metric(
        "flight_hours",
        "flight hours",
        "from the first tick to the last, summed over drones",
        TRUTH,
        unit="h",
        listed="no",
        column=True,
    ),
    Metric(
        "path_m",
        "path",
        "way flown by all drones, in three dimensions",
        TRUTH,
        unit="m",
        better="lower",
        aggregate="mean",
        places=0,
        listed="json",
        column=True,
    ),
    Metric(
        "energy_batteries",
        "energy",
        "charge spent by all drones, in full batteries; charge lost to an injected fault counts as spent",
        STATUS,
        unit="batteries",
        better="lower",
        aggregate="mean",
        places=2,
        listed="no",
        column=True,
    ),
    Metric(
        "yaw_rate_rms_rps",
        "yaw rate",
        "turning about the vertical during the search, root of the mean square",
        "true states; Diebel 2006, eq. 125",
        unit="rad/s",
        better="lower",
        aggregate="mean",
        places=3,
        listed="no",
        column=True,
    ),
    Metric(
        "yaw_rate_p95_rps",
        "yaw rate, 95th percentile",
        "turning about the vertical during the search, 95th percentile",
        "true states; Diebel 2006, eq. 125",
        unit="rad/s",
        better="lower",
        listed="no",
        column=True,
    ),
    Metric(
        "jerk_rms_mps3",
        "jerk",
        "second divided difference of velocity during the search, root of the mean square",
        TRUTH,
        unit="m/s³",
        better="lower",
        aggregate="mean",
        places=2,
        listed="no",
        column=True,
    ),
    Metric(
        "jerk_mean_mps3",
        "mean jerk",
        "magnitude of the second divided difference of velocity during the search, mean",
        TRUTH,
        unit="m/s³",
        better="lower",
        places=2,
        listed="no",
        column=True,
    ),
    Metric(
        "failsafe_entries",
        "failsafes",
        "failsafes entered, as seen in the status twice a second; a shorter one may be missed",
        STATUS,
        better="lower",
        listed="no",
        column=True,
    ),
    Metric(
        "episode_return",
        "return",
        "the weighted sum of what the return counts (below)",
        RETURN,
        better="higher",
        aggregate="mean",
        compared=True,
        signed=True,
        places=0,
        column=True,
    ),
    Metric(
        "area_m2",
        "search area",
        "area that was to be searched; 0 where it is not known",
        "world",
        unit="m²",
        listed="no",
        column=True,
    ),
    Metric(
        "gate_open",
        "frames through the gate",
        "share of all received frames that passed the phase gate; only episode records know it, beside a bag or alone",
        "episode record",
        share=True,
        better="higher",
        listed="no",
        column=True,
    ),
)
METRICS: dict[str, Metric] = {metric.key: metric for metric in _ALL}
"""All metrics by key, in the order in which documents list them."""

HEADLINE = (
    *("exposed_missions_with_false_alarm", "missions_with_false_alarm", "missions_with_collision", "coverage_240s"),
    *("victims_found", "mean_time_to_victim_s", "ppv", "displaced_issues", "cep50_m", "cep95_m"),
)
"""What a reader in a hurry is shown."""
SEED_BY_SEED = (
    *("missions_with_false_alarm", "missions_with_collision", "near_misses_per_mission", "victims_found"),
    *("cep50_m", "coverage_240s", "episode_return"),
)
SEED_RATES = (
    *("missions_with_false_alarm", "false_alarms_per_mission"),
    *("missions_with_collision", "collisions_per_hour"),
)
REPORTED = (
    *("exposed_missions_with_false_alarm", "false_alarms_per_decoy_hour", "absent_missions_with_false_alarm"),
    *("missions_with_exposed_decoy", "victims_found_240s", "time_to_each_victim_s", "victims_settled"),
    *("displaced_issues", "wrong_issues_per_mission", "ppv", "cep50_m", "cep95_m", "final_cep50_m", "final_cep95_m"),
)
"""What reports came to, for missions with victims and without together."""
AS_ADR149 = (
    *("adr149_cep50_m", "adr149_cep95_m", "adr149_gdop", "coverage_240s", "time_to_95_s"),
    *("adr149_time_to_first_detection_s", "adr149_detection_rate", "adr149_false_alarm_rate"),
    *("collisions_drone_drone_per_mission", "overlap_ratio"),
)
"""The ten metrics of ADR-149 section 4.1, in its order."""
NOISE_ENVELOPE = ("missions_with_detection", "missions_with_false_alarm", "cep50_m")


def register(added: Metric) -> Metric:
    """Add a metric, from here on part of every table, figure, page and file that this process writes."""
    if not added.key.isidentifier() or added.key in METRICS or added.label in {m.label for m in METRICS.values()}:
        raise InputError(f"metric {added.key!r} ({added.label}): key or label are taken, or the key is no plain name")
    METRICS[added.key] = added
    return added


def metric(key: str) -> Metric:
    """The entry of a key; a key that is not known, as in a document made elsewhere, is its own label."""
    return METRICS.get(key) or Metric(key, key.replace("_", " "), "", "")


def labels(keys: Sequence[str]) -> tuple[str, ...]:
    """Headings of a table's columns."""
    return tuple(metric(key).heading for key in keys)


def of_missions() -> list[Metric]:
    """What a mission by itself has: columns of the table, and what may be registered."""
    return [m for m in METRICS.values() if m.of_mission]


def estimated() -> list[Metric]:
    """What is said of a condition's missions together: shares, rates, quantiles, then means, then the least."""
    order: tuple[tuple[Aggregate, ...], ...] = (
        ("share", "rate", "quantile"),
        ("restricted mean", "mean"),
        ("least",),
    )
    return [m for kinds in order for m in METRICS.values() if m.aggregate in kinds]


def scored() -> list[Metric]:
    """What has an IQM over seeds and episodes; the return, which weighs the others, comes first."""
    return sorted((m for m in METRICS.values() if m.aggregate == "mean"), key=lambda m: m.key != "episode_return")


def timed() -> list[Metric]:
    """Times that may not come."""
    return [m for m in METRICS.values() if m.aggregate == "median time"]
