"""What the reports came to, transmitter by transmitter and inside the search: recounted here from the bag's truth.

The swarm's first confident report (above 0.85) of a transmitter is its issue: right within 10 m of the victim whose
device it is, displaced beyond, a decoy alarm where the device is nobody's. Later confident reports update it. A report
from before the search stands when the search begins. ADR-149's own way of counting is kept beside (`Adr149`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.arrays import VICTIM, Devices, Hearings, Reports

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CONFIDENT = 0.85
NEAR_M = 10.0
TICK_S = 0.05
FIX_STEP_S = 30.0
"""Every so often what the swarm held of a victim is looked at, however sure it was."""
KINDS = ("victim", "rescuer", "access_point", "passer_by", "interference")
RIGHT, DISPLACED, DECOY = "right", "displaced", "decoy"
VERDICTS = (RIGHT, DISPLACED, DECOY)


@dataclass(frozen=True)
class HeldReport:
    """What the swarm held of a victim's device at a time of the search: its latest report of any confidence.

    ``age_s`` is how old that report was.
    """

    time_s: float
    age_s: float
    error_m: float
    confidence: float
    path_gdop: float | None
    constellation_gdop: float | None
    information_dop_m: float | None
    views: int


@dataclass(frozen=True)
class Victim:
    """One victim: where, when its device was heard and issued, and how well. Times are search times.

    ``detected``: right at issue. Error, confidence, dilutions and views are those of the issue, right or not;
    ``settled_s`` is since when the confident reports stayed within 10 m, ``final_error_m`` the last one's error.
    """

    x_m: float
    y_m: float
    detected: bool
    issued_s: float | None = None
    error_m: float | None = None
    confidence: float | None = None
    path_gdop: float | None = None
    constellation_gdop: float | None = None
    information_dop_m: float | None = None
    views: int | None = None
    heard_s: float | None = None
    settled_s: float | None = None
    final_error_m: float | None = None
    fixes: tuple[HeldReport, ...] = ()

    @property
    def time_s(self) -> float | None:
        """When it was found."""
        return self.issued_s if self.detected else None


@dataclass(frozen=True)
class Decoy:
    """A transmitter that is no victim's. ``listed``: the swarm was told of it; None where that is not known.

    ``heard_s``: first observation by any drone in the search; ``alarm_s``: when it was issued.
    """

    address: int
    kind: str
    listed: bool | None
    heard_s: float | None
    alarm_s: float | None

    @property
    def exposed(self) -> bool:
        return self.heard_s is not None or self.alarm_s is not None

    def at_risk_s(self, search_s: float) -> float:
        """From when it was heard until it was issued, which it can be once, or the search ended; at least a tick.

        One that was issued without being heard in the search stood when the search began.
        """
        if not self.exposed:
            return 0.0
        begin = 0.0 if self.heard_s is None else self.heard_s
        return max((search_s if self.alarm_s is None else self.alarm_s) - begin, TICK_S)


@dataclass(frozen=True)
class Issue:
    """A transmitter's issue; ``flight_s`` counts from the start of the recording, as a replay does.

    ``error_m`` is the distance to the victim whose device it is; of a record of schema 1, to the nearest one.
    """

    verdict: str
    time_s: float
    flight_s: float
    address: int
    kind: str
    x_m: float
    y_m: float
    confidence: float
    error_m: float | None
    constellation_gdop: float | None = None


@dataclass(frozen=True)
class TrackReport:
    """The swarm's first or last report of one transmitter inside the search, of any confidence."""

    kind: str
    last: bool
    flight_s: float
    confidence: float
    right: bool
    error_m: float | None
    path_gdop: float | None


@dataclass(frozen=True)
class Adr149:
    """By ADR-149's definitions: confident reports of the whole mission, from its start, at any distance.

    ``confident``: of any transmitter; ``detected``: of a victim's; errors and GDOPs at the first report of each.
    """

    confident: bool
    detected: bool
    time_to_first_detection_s: float | None
    errors_m: tuple[float, ...]
    gdop: tuple[float | None, ...]


@dataclass(frozen=True)
class Findings:
    """Victims in the order of the bag, issues in the order of time, first and last reports by transmitter."""

    victims: tuple[Victim, ...]
    decoys: tuple[Decoy, ...]
    issues: tuple[Issue, ...]
    track_reports: tuple[TrackReport, ...]
    adr149: Adr149

    def count(self, verdict: str) -> int:
        return sum(issue.verdict == verdict for issue in self.issues)

    @property
    def first_issued(self) -> Issue | None:
        """The first issue of a victim's device, right or not."""
        return next((issue for issue in self.issues if issue.verdict != DECOY), None)

    @property
    def first_found(self) -> Issue | None:
        return next((issue for issue in self.issues if issue.verdict == RIGHT), None)


def judge(reports: Reports, devices: Devices, hearings: Hearings, begin_s: float, end_s: float) -> Findings:
    """Judge every report of an episode by the search's span in time of the flight; NaN where there was no search."""
    court = _Court(reports, devices, hearings, begin_s, end_s)
    issues = sorted(
        (found for found in map(court.issue, np.unique(court.address[court.inside]).tolist()) if found is not None),
        key=lambda issue: (issue.time_s, issue.address),
    )
    count = len(devices.address)
    return Findings(
        tuple(court.victim(d) for d in range(count) if devices.kind[d] == VICTIM),
        tuple(court.decoy(d) for d in range(count) if devices.kind[d] != VICTIM),
        tuple(issues),
        tuple(court.track_reports()),
        court.adr149(),
    )


@dataclass(frozen=True)
class JudgedRows:
    """Reports row by row: which count, which are right, and the verdict of those that are issues, by row."""

    inside: NDArray[np.bool_]
    right: NDArray[np.bool_]
    issues: dict[int, str]


def judge_rows(reports: Reports, devices: Devices, hearings: Hearings, begin_s: float, end_s: float) -> JudgedRows:
    """The same verdicts as `judge`, for whoever shows the reports themselves."""
    court = _Court(reports, devices, hearings, begin_s, end_s)
    rows = map(court.issued, np.unique(court.address[court.inside]).tolist())
    issues = {k: court.verdict(k) for k in sorted(k for k in rows if k is not None)}
    return JudgedRows(court.inside, court.inside & (court.error <= NEAR_M), issues)


class _Court:
    """The reports of an episode with what the truth says of each: rows k of K reports, in the order of the bag."""

    def __init__(self, reports: Reports, devices: Devices, hearings: Hearings, begin_s: float, end_s: float) -> None:
        self.reports, self.devices, self.hearings = reports, devices, hearings
        self.address = reports.address.astype(np.int64)
        places = devices.position[0] if len(devices.position) else np.empty((0, 3))
        whose = {int(a): d for d, a in enumerate(devices.address) if devices.kind[d] == VICTIM}
        self.error = np.full(len(self.address), np.nan)
        for address, d in whose.items():
            mine = self.address == address
            self.error[mine] = np.hypot(*(reports.position[mine, :2] - places[d, :2]).T)
        self.places, self.kinds = places, {int(a): int(k) for a, k in zip(devices.address, devices.kind, strict=True)}
        searched = math.isfinite(begin_s)
        self.begin_ns = round(begin_s * 1e9) if searched else 0
        self.end_ns = round(end_s * 1e9) if searched else -1
        self.confident = reports.confidence > CONFIDENT
        stamps = reports.stamps_ns
        self.inside = (stamps >= self.begin_ns) & (stamps <= self.end_ns)
        for address in np.unique(self.address[stamps < self.begin_ns]).tolist() if searched else ():
            self.inside[np.flatnonzero((self.address == address) & (stamps < self.begin_ns))[-1]] = True

    def rows(self, address: int) -> Ints:
        return np.flatnonzero(self.inside & (self.address == address))

    def since_begin(self, k: int) -> float:
        """Search time of a report; one from before the search stands when it begins."""
        return max(int(self.reports.stamps_ns[k]) - self.begin_ns, 0) / 1e9

    def flight_s(self, k: int) -> float:
        return max(int(self.reports.stamps_ns[k]), self.begin_ns if self.inside[k] else 0) / 1e9

    def kind(self, address: int) -> str:
        number = self.kinds.get(address)
        return KINDS[number] if number is not None and 0 <= number < len(KINDS) else "unknown"

    def error_of(self, k: int) -> float | None:
        return _defined(self.error[k])

    def heard_s(self, address: int) -> float | None:
        """Search time of the first observation by any drone inside the search."""
        h = self.hearings
        at = h.stamps_ns[(h.address == address) & (h.stamps_ns >= self.begin_ns) & (h.stamps_ns <= self.end_ns)]
        return (int(at.min()) - self.begin_ns) / 1e9 if at.size else None

    def issued(self, address: int) -> int | None:
        """The row of its first confident report that counts."""
        rows = self.rows(address)
        sure = rows[self.confident[rows]]
        return int(sure[0]) if sure.size else None

    def verdict(self, k: int) -> str:
        error = self.error_of(k)
        return DECOY if error is None else RIGHT if error <= NEAR_M else DISPLACED

    def issue(self, address: int) -> Issue | None:
        k = self.issued(address)
        if k is None:
            return None
        return Issue(
            verdict=self.verdict(k),
            time_s=self.since_begin(k),
            flight_s=self.flight_s(k),
            address=address,
            kind=self.kind(address),
            x_m=float(self.reports.position[k, 0]),
            y_m=float(self.reports.position[k, 1]),
            confidence=float(self.reports.confidence[k]),
            error_m=self.error_of(k),
            constellation_gdop=_defined(self.reports.constellation_gdop[k]),
        )

    def victim(self, d: int) -> Victim:
        address = int(self.devices.address[d])
        rows = self.rows(address)
        sure = rows[self.confident[rows]]
        x, y = float(self.places[d, 0]), float(self.places[d, 1])
        heard, held = self.heard_s(address), tuple(self.fixes(rows))
        if not sure.size:
            return Victim(x, y, detected=False, heard_s=heard, fixes=held)
        k, r = int(sure[0]), self.reports
        off = np.flatnonzero(self.error[sure] > NEAR_M)
        settled = sure[int(off[-1]) + 1 :] if off.size else sure
        return Victim(
            x_m=x,
            y_m=y,
            detected=bool(self.error[k] <= NEAR_M),
            issued_s=self.since_begin(k),
            error_m=float(self.error[k]),
            confidence=float(r.confidence[k]),
            path_gdop=_defined(r.path_gdop[k]),
            constellation_gdop=_defined(r.constellation_gdop[k]),
            information_dop_m=_defined(r.information_dop[k]),
            views=int(r.views[k]),
            heard_s=heard,
            settled_s=self.since_begin(int(settled[0])) if settled.size else None,
            final_error_m=float(self.error[sure[-1]]),
            fixes=held,
        )

    def fixes(self, rows: Ints) -> Iterator[HeldReport]:
        """The latest of these reports at each whole FIX_STEP_S of the search."""
        times = np.maximum(self.reports.stamps_ns[rows] - self.begin_ns, 0) / 1e9
        for n in range(1, int((self.end_ns - self.begin_ns) / 1e9 / FIX_STEP_S) + 1):
            at = n * FIX_STEP_S
            by_then = rows[times <= at]
            if by_then.size:
                k, r = int(by_then[-1]), self.reports
                yield HeldReport(
                    time_s=at,
                    age_s=at - self.since_begin(k),
                    error_m=float(self.error[k]),
                    confidence=float(r.confidence[k]),
                    path_gdop=_defined(r.path_gdop[k]),
                    constellation_gdop=_defined(r.constellation_gdop[k]),
                    information_dop_m=_defined(r.information_dop[k]),
                    views=int(r.views[k]),
                )

    def decoy(self, d: int) -> Decoy:
        address = int(self.devices.address[d])
        issue = self.issue(address)
        listed = None if self.devices.listed is None else bool(self.devices.listed[d])
        heard, alarm = self.heard_s(address), None if issue is None else issue.time_s
        return Decoy(address, self.kind(address), listed, heard, alarm)

    def track_reports(self) -> Iterator[TrackReport]:
        for address in np.unique(self.address[self.inside]).tolist():
            rows = self.rows(address)
            for k, last in ((int(rows[0]), False), (int(rows[-1]), True)):
                error = self.error_of(k)
                yield TrackReport(
                    kind=self.kind(address),
                    last=last,
                    flight_s=self.flight_s(k),
                    confidence=float(self.reports.confidence[k]),
                    right=error is not None and error <= NEAR_M,
                    error_m=error,
                    path_gdop=_defined(self.reports.path_gdop[k]),
                )

    def adr149(self) -> Adr149:
        sure = np.flatnonzero(self.confident)
        first = [int(sure[self.address[sure] == address][0]) for address in np.unique(self.address[sure]).tolist()]
        of_victims = [
            k
            for k in sorted(first, key=lambda k: (self.reports.stamps_ns[k], self.address[k]))
            if math.isfinite(self.error[k])
        ]
        return Adr149(
            confident=bool(first),
            detected=bool(of_victims),
            time_to_first_detection_s=float(self.reports.stamps_ns[of_victims[0]]) / 1e9 if of_victims else None,
            errors_m=tuple(float(self.error[k]) for k in of_victims),
            gdop=tuple(_defined(self.reports.constellation_gdop[k]) for k in of_victims),
        )


def backed_since(reports: Reports, hearings: Hearings, begin_s: float, end_s: float) -> dict[int, float]:
    """Since when (time of the flight, s) each drone's usable observations have backed an issue or an update of one."""
    since: dict[int, float] = {}
    inside = (reports.stamps_ns <= round(end_s * 1e9)) & (reports.confidence > CONFIDENT)
    for k in np.flatnonzero(inside).tolist():
        at = max(int(reports.stamps_ns[k]), round(begin_s * 1e9))
        own = (hearings.address == reports.address[k]) & hearings.usable
        own &= (hearings.stamps_ns >= round(begin_s * 1e9)) & (hearings.stamps_ns <= at)
        for uav in np.unique(hearings.uav[own]).tolist():
            since.setdefault(uav, at / 1e9)
    return since


def _defined(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
