"""What the definitions of schema 1 hid: its published figures beside those that its records give by today's.

Schema 1 took a report within 10 m of any victim as a detection and every other confident one as a false alarm, a
victim's own device 12 m off too; left errors beyond 10 m out of CEP; counted reports after the search; and took
missions that share a layout as independent. A record of schema 1 holds each victim's first report within 10 m and each
transmitter's first one beyond, which is enough to say which came first: the issue. It does not hold

- when the search began: the caller says how long after the start of a recording that is (``begin_s``);
- a second report: one made before the search is taken as standing when it begins;
- what the drones heard: missions are counted whose layout has a rescuer that is on no list, heard or not;
- a decoy's report within 10 m of a victim, which passed as that victim's detection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sar_analysis.metrics.findings import NEAR_M
from sar_analysis.stats import clustered
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import DEFAULT, Options
from sar_analysis.stats.rates import clopper_pearson, order_quantile
from sar_core.errors import ContractError, MissingDataError

HORIZON_S = 240.0


@dataclass(frozen=True)
class Layout:
    """Of an episode's layout: its number, where the victim of each address lies, and whether a rescuer's radio in it is
    on no list: the one decoy that nothing in its frames tells from a victim's device for as long as the search."""

    number: int
    victims: Mapping[int, tuple[float, float]]
    unlisted_rescuer: bool


class Correction(NamedTuple):
    """One figure twice: by schema 1 with its interval of independent missions (None: not given then), and anew.

    ``metric`` is the catalogue's key of what it comes nearest to.
    """

    words: str
    metric: str
    unit: str
    published: Interval | None
    corrected: Interval

    def row(self) -> dict[str, Any]:
        """As it stands in results.json."""
        return {
            "words": self.words,
            "metric": self.metric,
            "unit": self.unit,
            "published": None if self.published is None else _plain(self.published),
            "corrected": _plain(self.corrected),
        }


def _plain(figure: Interval) -> dict[str, Any]:
    told = {"value": figure.value, **figure.ends, "n": figure.n, "of": figure.unit, "method": figure.method}
    drawn = {"cluster": figure.cluster or None, "resamples": figure.resamples, "seed": figure.seed}
    return {**told, **drawn, "notes": list(figure.notes)}


class _Issue(NamedTuple):
    """The first confident report of a transmitter inside the search; error None for a decoy's."""

    search_s: float
    error_m: float | None


@dataclass(frozen=True)
class _Mission:
    """What one record tells by today's definitions, and by those of schema 1."""

    layout: Layout
    absent: bool
    victims: tuple[_Issue | None, ...]
    decoys: tuple[_Issue, ...]
    old_alarms: int
    old_errors_m: tuple[float, ...]

    @property
    def issues(self) -> int:
        return len(self.decoys) + sum(issue is not None for issue in self.victims)

    @property
    def right(self) -> int:
        return sum(_is_right(issue) for issue in self.victims)


def _is_right(issue: _Issue | None) -> bool:
    return issue is not None and issue.error_m is not None and issue.error_m <= NEAR_M


def corrections(
    results: Sequence[Mapping[str, Any]],
    layout_of: Callable[[int], Layout],
    begin_s: float,
    options: Options = DEFAULT,
) -> list[Correction]:
    """The figures of a campaign flown by schema 1, from the ``result`` of every record."""
    valid = [result for result in results if result["valid"] and result["detections"] is not None]
    if not valid:
        raise MissingDataError("no valid mission with a radio among the records; at least one is needed")
    missions = [_mission(result, layout_of(result["episode"]), begin_s) for result in valid]
    present, absent = ([m for m in missions if m.absent is side] for side in (False, True))
    made: list[Correction] = []
    if absent:
        made += _of_absent(absent, options)
    if present:
        made += _of_present(present, options)
    if present and absent:
        _refuse_unpaired(present, absent)
        made.append(_ppv("right issues of all issues, victims absent in one of two missions (PPV)", missions, options))
    return made


def _mission(result: Mapping[str, Any], layout: Layout, begin: float) -> _Mission:
    end = result["search_time_s"]
    away: dict[int, _Issue] = {}
    decoys = []
    for alarm in result["false_alarm_events"]:
        at = max(alarm["time_s"] - begin, 0.0)
        if at > end:
            continue
        if alarm["kind"] != "victim":
            decoys.append(_Issue(at, None))
            continue
        if alarm["address"] not in layout.victims:
            raise ContractError(f"{result['episode_id']}: no victim of its layout has address {alarm['address']}")
        x, y = layout.victims[alarm["address"]]
        away[alarm["address"]] = _Issue(at, math.hypot(alarm["x"] - x, alarm["y"] - y))
    issued = []
    for victim in result["victims"]:
        address = min(layout.victims, key=lambda a: math.dist(layout.victims[a], (victim["x"], victim["y"])))
        said = [away[address]] if address in away else []
        if victim["detected"] and victim["time_s"] <= end:
            said.append(_Issue(victim["time_s"], victim["error_m"]))
        issued.append(min(said, default=None))
    errors = tuple(victim["error_m"] for victim in result["victims"] if victim["detected"])
    is_absent = result["configuration"]["victim_absent"]
    return _Mission(layout, is_absent, tuple(issued), tuple(decoys), result["false_alarms"], errors)


def _of_absent(missions: Sequence[_Mission], options: Options) -> list[Correction]:
    risky = [m for m in missions if m.layout.unlisted_rescuer]
    made = [_alarmed("false alarm, victims absent", missions, lambda m: m.old_alarms > 0, options)]
    if risky:
        words = "decoy alarm, victims absent, where the layout has an unlisted rescuer"
        made.append(_alarmed(words, risky, None, options))
    return made


def _of_present(missions: Sequence[_Mission], options: Options) -> list[Correction]:
    victims = [(m.layout.number, issue) for m in missions for issue in m.victims]
    layouts = [number for number, _ in victims]
    issued = [(number, issue.error_m) for number, issue in victims if issue is not None and issue.error_m is not None]
    errors, of_issued = np.array([error for _, error in issued]), [number for number, _ in issued]
    seen = np.array([error for m in missions for error in m.old_errors_m])
    times = np.array([issue.search_s if issue is not None and _is_right(issue) else math.inf for _, issue in victims])
    right, times = times <= HORIZON_S, np.minimum(times, HORIZON_S)
    made = [
        _alarmed("false alarm, victims present", missions, lambda m: m.old_alarms > 0, options),
        Correction(
            "victims found; now: right when issued, by 240 s",
            "victims_found_240s",
            "share",
            clopper_pearson(len(seen), len(victims)),
            clustered.share(right, np.ones(len(right)), layouts, options, "victims"),
        ),
        Correction(
            "time to find a victim, a miss is 240 s",
            "time_to_each_victim_s",
            "s",
            None,
            clustered.rmst(times, right, HORIZON_S, layouts, options, "victims"),
        ),
    ]
    if len(errors):
        displaced = clustered.share(errors > NEAR_M, np.ones(len(errors)), of_issued, options, "issued victims")
        words = "displaced: issued victims more than 10 m off"
        made.append(Correction(words, "displaced_issues", "share", None, displaced))
        for percent in (50, 95):
            q = percent / 100
            before = order_quantile(seen.tolist(), q) if len(seen) else None
            now = clustered.quantile(errors, q, of_issued, options, "issued victims")
            made.append(Correction(f"CEP{percent} at issue", f"cep{percent}_m", "m", before, now))
    made.append(_ppv("right issues of all issues, victims present (PPV)", missions, options))
    return made


def _alarmed(
    words: str, missions: Sequence[_Mission], before: Callable[[_Mission], bool] | None, options: Options
) -> Correction:
    """Missions with a decoy alarm; ``before`` says which had a false alarm by schema 1."""
    n, absent = len(missions), missions[0].absent
    old = None if before is None else clopper_pearson(sum(map(before, missions)), n)
    hits = np.array([bool(m.decoys) for m in missions])
    now = clustered.share(hits, np.ones(n), [m.layout.number for m in missions], options)
    return Correction(words, f"{'absent_' * absent}missions_with_false_alarm", "share", old, now)


def _ppv(words: str, missions: Sequence[_Mission], options: Options) -> Correction:
    right, issues = (np.array(column) for column in zip(*((m.right, m.issues) for m in missions), strict=True))
    layouts = [m.layout.number for m in missions]
    return Correction(words, "ppv", "share", None, clustered.share(right, issues, layouts, options, "issues"))


def _refuse_unpaired(present: Sequence[_Mission], absent: Sequence[_Mission]) -> None:
    if len(present) != len(absent):
        raise ContractError(
            f"{len(present)} missions with victims and {len(absent)} without; PPV at one to one needs as many of either"
        )
