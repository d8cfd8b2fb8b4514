"""Every metric once: what it is called and means, which way is better, and how missions become a figure.

Tables, figures, page, CSV, LaTeX, the JSON schema, docs/metrics.md and registrations read this. A metric is added here,
with the function that gives it, and nowhere else: `measure` takes it from a bag, `value` from what is known of a
mission already, `counts`, `samples` or `timed` from many missions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from sar_core.errors import InputError

if TYPE_CHECKING:
    from sar_analysis.bags.reader import Bag
    from sar_analysis.metrics.findings import Victim
    from sar_analysis.metrics.metrics import EpisodeMetrics

COVERAGE_TIME_S = 240.0
Better = Literal["higher", "lower", "neither"]
Aggregate = Literal["share", "rate", "quantile", "median time", "mean", "least", "paired mean", "none"]
Missions = Sequence["EpisodeMetrics"]
Value = Callable[["EpisodeMetrics"], float | None]
INTERVALS: dict[Aggregate, str] = {
    "share": "Clopper-Pearson",
    "rate": "exact Poisson",
    "quantile": "order statistics",
    "median time": "Kaplan-Meier, log-log",
    "mean": "of the IQM: jackknife over seeds, over seeds and layouts, t; bootstrap of both from ten seeds on",
    "least": "none",
    "paired mean": "jackknife over seeds, or over seeds and layouts, t",
    "none": "none",
}
"""By which interval each kind of figure is given."""


@dataclass(frozen=True)
class Metric:
    """One metric. `unit` is the value's own; `of` says what a figure's n counts, or per what a rate is.

    The functions: `measure` and `value` give one number per mission, None where it has none; `counts` gives successes
    and trials of a share, events and exposure of a rate; `samples` the values a quantile is taken of; `timed` pairs of
    time and end of watch [s], the time None where it never came.
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
    counts: Callable[[Missions], tuple[int, float]] | None = None
    samples: Callable[[Missions], list[float]] | None = None
    timed: Callable[[Missions], list[tuple[float | None, float]]] | None = None
    quantile: float = 0.5
    compared: bool = False
    """Whether patterns are held against each other on its IQM."""
    open_ended: bool = False
    """A mission that missed has no number: it counts as beyond every number, never as left out."""
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
        return self.source == REPORTS

    @property
    def of_victims(self) -> bool:
        return self.of in ("victims", "detected victims")

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


def _victims(missions: Missions) -> list[Victim]:
    return [v for e in missions for v in e.victims]


def _heard(missions: Missions) -> list[EpisodeMetrics]:
    return [e for e in missions if e.false_alarms is not None]


def _hours(missions: Missions) -> float:
    return sum(e.flight_hours for e in missions)


def _with_detection(missions: Missions) -> tuple[int, int]:
    searched = [e for e in _heard(missions) if e.victims]
    return sum(bool(e.detections) for e in searched), len(searched)


def _found(missions: Missions) -> tuple[int, int]:
    victims = _victims(missions)
    return sum(v.detected for v in victims), len(victims)


def _found_in_time(missions: Missions) -> tuple[int, int]:
    victims = _victims(missions)
    in_time = [v for v in victims if v.detected and v.time_s is not None and v.time_s <= COVERAGE_TIME_S]
    return len(in_time), len(victims)


def _with_alarm(missions: Missions) -> tuple[int, int]:
    heard = _heard(missions)
    return sum(bool(e.false_alarms) for e in heard), len(heard)


def _alarms(missions: Missions, hourly: bool) -> tuple[int, float]:
    heard = _heard(missions)
    return sum(e.false_alarms or 0 for e in heard), _hours(heard) if hourly else len(heard)


def _errors(missions: Missions, name: str) -> list[float]:
    found = (getattr(v, name) for v in _victims(missions) if v.detected)
    return [error for error in found if error is not None]


def _events(missions: Missions, name: str, hourly: bool = False) -> tuple[int, float]:
    return sum(getattr(e, name) for e in missions), _hours(missions) if hourly else len(missions)


def _times(missions: Missions, name: str, sought: bool) -> list[tuple[float | None, float]]:
    return [(getattr(e, name), e.search_time_s) for e in missions if e.victims or not sought]


def _victim_times(missions: Missions) -> list[tuple[float | None, float]]:
    return [(v.time_s, e.search_time_s) for e in missions for v in e.victims]


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
        "missions with a detection",
        "missions with victims in which at least one was found",
        REPORTS,
        share=True,
        better="higher",
        aggregate="share",
        counts=_with_detection,
    ),
    Metric(
        "victims_found",
        "victims found",
        "victims with a report of confidence > 0.85 within 10 m",
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
        "victims with a report of confidence > 0.85 within 10 m and within 240 s of search",
        REPORTS,
        share=True,
        better="higher",
        aggregate="share",
        of="victims",
        counts=_found_in_time,
    ),
    Metric(
        "missions_with_false_alarm",
        "missions with a false alarm",
        "missions with at least one false alarm",
        REPORTS,
        share=True,
        better="lower",
        aggregate="share",
        counts=_with_alarm,
    ),
    Metric(
        "false_alarms_per_mission",
        "false alarms per mission",
        "false alarms of all missions flown with radio, by their number",
        REPORTS,
        better="lower",
        aggregate="rate",
        of="mission",
        counts=partial(_alarms, hourly=False),
    ),
    Metric(
        "false_alarms_per_hour",
        "false alarms per flight hour",
        "false alarms of all missions flown with radio, by the hours flown by all drones together",
        REPORTS,
        better="lower",
        aggregate="rate",
        of="flight hour",
        counts=partial(_alarms, hourly=True),
    ),
    *(
        Metric(
            f"{prefix}cep{percent}_m",
            f"CEP{percent} at {which} report",
            f"the error that {percent} % of the found victims stay within at their {which} confident report",
            REPORTS,
            unit="m",
            better="lower",
            aggregate="quantile",
            of="detected victims",
            samples=partial(_errors, name=name),
            quantile=percent / 100,
        )
        for prefix, which, name in (("", "first", "error_m"), ("final_", "last", "final_error_m"))
        for percent in (50, 95)
    ),
    Metric(
        "missions_with_collision",
        "missions with a collision",
        "missions with at least one collision",
        REFEREE,
        share=True,
        better="lower",
        aggregate="share",
        counts=lambda missions: (sum(e.collisions > 0 for e in missions), len(missions)),
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
        "mean error of a mission's victims at their first confident report, one never found as 10 m",
        REPORTS,
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
        "false alarms",
        "transmitters with a report of confidence > 0.85 farther than 10 m from every victim, each counted once",
        REPORTS,
        better="lower",
        column=True,
    ),
    Metric(
        "detections",
        "detections",
        "victims with a report of confidence > 0.85 within 10 m",
        REPORTS,
        better="higher",
        column=True,
    ),
    Metric(
        "localization_error_m",
        "error of the first found",
        "horizontal error at the first confident report of the victim found first; empty: none found",
        REPORTS,
        unit="m",
        better="lower",
        open_ended=True,
        column=True,
    ),
    Metric(
        "final_localization_error_m",
        "last error of the first found",
        "horizontal error at the last confident report of the victim found first; empty: none found",
        REPORTS,
        unit="m",
        better="lower",
        open_ended=True,
        listed="no",
        column=True,
    ),
    Metric(
        "gdop",
        "GDOP",
        "dilution of precision by geometry at the first confident report of the victim found first; empty: undefined",
        REPORTS,
        better="lower",
        open_ended=True,
        column=True,
    ),
    Metric(
        "time_to_first_detection_s",
        "time to first detection",
        "search time of the first confident report within 10 m of a victim; empty: none found",
        REPORTS,
        unit="s",
        better="lower",
        aggregate="median time",
        timed=partial(_times, name="time_to_first_detection_s", sought=True),
        open_ended=True,
        column=True,
    ),
    Metric(
        "time_to_each_victim_s",
        "time to each victim",
        "search time of a victim's first confident report; one that did not come is censored at the search's end",
        REPORTS,
        unit="s",
        better="lower",
        aggregate="median time",
        of="victims",
        timed=_victim_times,
    ),
    Metric(
        "time_to_95_s",
        "time to 95 % coverage",
        "search time at which 95 % of the cells are scanned; empty: never",
        TRUTH,
        unit="s",
        better="lower",
        aggregate="median time",
        timed=partial(_times, name="time_to_95_s", sought=False),
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
    *("missions_with_false_alarm", "missions_with_collision", "coverage_240s"),
    *("victims_found", "cep50_m", "cep95_m"),
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
    """What is said of a condition's missions together: shares, rates and quantiles, then means, then the least."""
    order: tuple[tuple[Aggregate, ...], ...] = (("share", "rate", "quantile"), ("mean",), ("least",))
    return [m for kinds in order for m in METRICS.values() if m.aggregate in kinds]


def scored() -> list[Metric]:
    """What has an IQM over seeds and episodes; the return, which weighs the others, comes first."""
    return sorted((m for m in METRICS.values() if m.aggregate == "mean"), key=lambda m: m.key != "episode_return")


def timed() -> list[Metric]:
    """Times that may not come."""
    return [m for m in METRICS.values() if m.aggregate == "median time"]
