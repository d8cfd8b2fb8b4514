"""What the reports came to: which victims were found, when and how well, and which reports were false alarms.

A report counts when its confidence exceeds 0.85. Within 10 m of a victim it is a detection of the nearest one; farther
from every victim it is a false alarm, counted once per transmitter and mission (in a victim-absent mission: any).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.arrays import VICTIM, Devices, Reports

Floats = NDArray[np.float64]

CONFIDENT = 0.85
NEAR_M = 10.0
KINDS = ("victim", "rescuer", "access_point", "passer_by", "interference")


@dataclass(frozen=True)
class Victim:
    """One victim: where, and, if found, the first confident report within 10 m of it and the last one's error."""

    x_m: float
    y_m: float
    detected: bool
    time_s: float | None = None
    error_m: float | None = None
    gdop: float | None = None
    views: int | None = None
    confidence: float | None = None
    final_error_m: float | None = None


@dataclass(frozen=True)
class FalseAlarmReport:
    """The first confident report of a transmitter away from every victim; distance None where there is none.

    flight_s counts from the start of the recording, as a replay does.
    """

    flight_s: float
    address: int
    kind: str
    x_m: float
    y_m: float
    confidence: float
    distance_m: float | None


@dataclass(frozen=True)
class Word:
    """What the swarm said of one transmitter at one time, and whether a victim lay within 10 m of that place."""

    kind: str
    last: bool
    flight_s: float
    confidence: float
    correct: bool
    error_m: float | None
    gdop: float | None


@dataclass(frozen=True)
class Findings:
    """Victims in the order of the bag, false alarms in the order of time, first and last words by transmitter."""

    victims: tuple[Victim, ...]
    false_alarms: tuple[FalseAlarmReport, ...]
    words: tuple[Word, ...]

    @property
    def first(self) -> Victim | None:
        """The victim found first; of two at the same time the one listed first."""
        found = [v for v in self.victims if v.time_s is not None]
        return min(found, key=lambda v: v.time_s or 0.0, default=None)


def judge(reports: Reports, devices: Devices, search_begin_s: float) -> Findings:
    """Judge every confident report of an episode; times are search times, reports before the search count as 0."""
    places = devices.position[0, devices.kind == VICTIM, :2] if len(devices.position) else np.empty((0, 2))
    kinds = dict(zip(devices.address.tolist(), devices.kind.tolist(), strict=True))
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    alarms: dict[int, FalseAlarmReport] = {}
    distances = np.hypot(*np.moveaxis(reports.position[:, None, :2] - places[None], -1, 0))
    times = np.maximum(reports.stamps_ns * 1e-9 - search_begin_s, 0.0)
    for k in np.flatnonzero(reports.confidence > CONFIDENT).tolist():
        nearest = int(np.argmin(distances[k])) if len(places) else -1
        away = float(distances[k, nearest]) if len(places) else math.inf
        if away <= NEAR_M:
            first.setdefault(nearest, k)
            last[nearest] = k
            continue
        address = int(reports.address[k])
        x, y = (float(v) for v in reports.position[k, :2])
        alarm = FalseAlarmReport(
            flight_s=float(reports.stamps_ns[k]) / 1e9,
            address=address,
            kind=_kind(kinds.get(address)),
            x_m=x,
            y_m=y,
            confidence=float(reports.confidence[k]),
            distance_m=away if math.isfinite(away) else None,
        )
        alarms.setdefault(address, alarm)
    victims = tuple(
        _victim(place, v, first.get(v), last.get(v), distances, times, reports) for v, place in enumerate(places)
    )
    return Findings(victims, tuple(alarms.values()), tuple(_words(reports, distances, kinds)))


def _words(reports: Reports, distances: Floats, kinds: dict[int, int]) -> Iterator[Word]:
    """The swarm's first and last word on every transmitter: what a calibration curve is drawn of."""
    for address in np.unique(reports.address).tolist():
        rows = np.flatnonzero(reports.address == address)
        latest = rows[reports.stamps_ns[rows] == reports.stamps_ns[rows[-1]]][0]
        for k, last in ((rows[0], False), (latest, True)):
            error = float(distances[k].min()) if distances.shape[1] else None
            yield Word(
                kind=_kind(kinds.get(address)),
                last=last,
                flight_s=float(reports.stamps_ns[k]) / 1e9,
                confidence=float(reports.confidence[k]),
                correct=error is not None and error <= NEAR_M,
                error_m=error,
                gdop=_defined(float(reports.gdop[k])),
            )


def _defined(gdop: float) -> float | None:
    return gdop if math.isfinite(gdop) else None


def _kind(number: int | None) -> str:
    return KINDS[number] if number is not None and 0 <= number < len(KINDS) else "unknown"


def _victim(
    place: Floats, v: int, first: int | None, last: int | None, distances: Floats, times: Floats, reports: Reports
) -> Victim:
    x, y = float(place[0]), float(place[1])
    if first is None or last is None:
        return Victim(x, y, detected=False)
    return Victim(
        x_m=x,
        y_m=y,
        detected=True,
        time_s=float(times[first]),
        error_m=float(distances[first, v]),
        gdop=_defined(float(reports.gdop[first])),
        views=int(reports.views[first]),
        confidence=float(reports.confidence[first]),
        final_error_m=float(distances[last, v]),
    )
