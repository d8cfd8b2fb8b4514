"""The referee's judgement of what the swarm reports, transmitter by transmitter, inside the search.

A report is confident above 0.85. The swarm's first confident report of a transmitter is its issue: right within 10 m of
the victim whose device it is, displaced beyond, a decoy alarm where the device is nobody's. Later confident reports
update it. A report from before the search stands when the search begins; after the search nothing is judged.

ADR-149 judges otherwise: the whole mission, and no distance. `ReportScorer.mission_first` keeps what that takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

CONFIDENT = 0.85
NEAR_M = 10.0
FIX_STEP_S = 30.0
"""Every so often what the swarm held of a victim is kept, however sure it was."""
ROUNDING_S = 1e-9


class ReportVerdict(StrEnum):
    """What an issue or an update is."""

    RIGHT = "right"
    DISPLACED = "displaced"
    DECOY = "decoy"


@dataclass(frozen=True)
class Report:
    """What a drone claims about one transmitter; position in ENU metres, a dilution None where undefined.

    Dilution is told three ways: by the way flown, by the drones that hear it now, and in metres by all information.
    views: how many independent viewpoints it rests on.
    """

    time_s: float
    drone: int
    address: int
    x: float
    y: float
    confidence: float
    path_gdop: float | None
    constellation_gdop: float | None = None
    information_dop_m: float | None = None
    views: int = 0


class Owner(NamedTuple):
    """Whose device a transmitter is: the victim's number, and where that victim lies."""

    victim: int
    x: float
    y: float


class Hearing(NamedTuple):
    """A drone (from 0) made an observation of a transmitter; ``usable``: it may move an estimate."""

    drone: int
    address: int
    usable: bool


@dataclass(frozen=True)
class Judged:
    """A confident report with its verdict; victim and error None for a decoy, ``update`` false for the issue."""

    report: Report
    verdict: ReportVerdict
    victim: int | None
    error_m: float | None
    update: bool


@dataclass
class TransmitterScore:
    """What the search made of one transmitter.

    ``heard_s`` is the first observation by any drone, ``hearers`` those who made a usable one; ``settled_s`` since when
    the confident reports have stayed within 10 m, None while the last one has not; ``history`` holds all reports of a
    victim's device.
    """

    heard_s: float | None = None
    hearers: set[int] = field(default_factory=set)
    first: Report | None = None
    last: Report | None = None
    issue: Judged | None = None
    latest: Judged | None = None
    settled_s: float | None = None
    history: list[Report] = field(default_factory=list)


@dataclass
class ReportScorer:
    """Keeps the score. ``owners`` says of each victim's device whose it is; every other transmitter is a decoy."""

    owners: Mapping[int, Owner]
    sightings: dict[int, TransmitterScore] = field(default_factory=dict)
    mission_first: dict[int, Report] = field(default_factory=dict)
    """First confident report of each transmitter in the whole mission, as ADR-149 counts."""
    backing: set[int] = field(default_factory=set)
    """Drones with a usable observation of a transmitter by the time that it was issued or updated."""
    _standing: dict[int, Report] = field(default_factory=dict)
    _begin_s: float = math.inf

    def error_m(self, report: Report) -> float | None:
        """How far a report lies from the victim whose device it reports; None for a decoy's."""
        place = self.owners.get(report.address)
        return None if place is None else math.hypot(report.x - place.x, report.y - place.y)

    def right(self, report: Report) -> bool:
        error = self.error_m(report)
        return error is not None and error <= NEAR_M

    def listen(self, time_s: float, heard: Iterable[Hearing], begin_s: float, end_s: float) -> None:
        """Take in of which transmitters drones made an observation at this time."""
        if begin_s <= time_s <= end_s:
            for drone, address, usable in heard:
                sighting = self._sighting(address)
                if sighting.heard_s is None:
                    sighting.heard_s = time_s
                if usable:
                    sighting.hearers.add(drone)

    def judge(self, reports: Sequence[Report], begin_s: float, end_s: float) -> list[Judged]:
        """Take in a tick's reports; ``begin_s`` and ``end_s`` of the search are inf until they are known."""
        verdicts = []
        if begin_s < self._begin_s:
            self._begin_s = begin_s
            standing = sorted(self._standing.values(), key=lambda report: (report.time_s, report.address))
            verdicts = [self._take(replace(report, time_s=begin_s)) for report in standing]
        for report in reports:
            if report.confidence > CONFIDENT:
                self.mission_first.setdefault(report.address, report)
            if report.time_s < begin_s:
                self._standing[report.address] = report
            elif report.time_s <= end_s:
                verdicts.append(self._take(report))
        return [judged for judged in verdicts if judged is not None]

    def _sighting(self, address: int) -> TransmitterScore:
        return self.sightings.setdefault(address, TransmitterScore())

    def _take(self, report: Report) -> Judged | None:
        sighting = self._sighting(report.address)
        sighting.first = sighting.first or report
        sighting.last = report
        place = self.owners.get(report.address)
        if place is not None:
            sighting.history.append(report)
        if not report.confidence > CONFIDENT:
            return None
        error = self.error_m(report)
        verdict = (
            ReportVerdict.DECOY
            if error is None
            else ReportVerdict.RIGHT
            if error <= NEAR_M
            else ReportVerdict.DISPLACED
        )
        victim = None if place is None else place.victim
        judged = Judged(report, verdict, victim, error, update=sighting.issue is not None)
        sighting.issue = sighting.issue or judged
        sighting.latest = judged
        self.backing |= sighting.hearers
        if verdict is not ReportVerdict.RIGHT:
            sighting.settled_s = None
        elif sighting.settled_s is None:
            sighting.settled_s = report.time_s
        return judged

    @property
    def issues(self) -> list[Judged]:
        """In the order of time, of one time by address."""
        made = [s.issue for s in self.sightings.values() if s.issue is not None]
        return sorted(made, key=lambda issue: (issue.report.time_s, issue.report.address))

    def count(self, verdict: ReportVerdict) -> int:
        """How many issues have it."""
        return sum(s.issue is not None and s.issue.verdict is verdict for s in self.sightings.values())

    def of_victim(self, number: int) -> list[TransmitterScore]:
        """What the search made of a victim's devices."""
        return [
            s for address, s in self.sightings.items() if address in self.owners and self.owners[address][0] == number
        ]


def fixes(history: Sequence[Report], begin_s: float, search_s: float) -> list[tuple[float, Report]]:
    """At each whole FIX_STEP_S of a search: the search time and the latest report by then, of any confidence."""
    made, at = [], -1
    for k in range(1, int(search_s / FIX_STEP_S + ROUNDING_S) + 1):
        time_s = k * FIX_STEP_S
        while at + 1 < len(history) and history[at + 1].time_s - begin_s <= time_s + ROUNDING_S:
            at += 1
        if at >= 0:
            made.append((time_s, history[at]))
    return made
