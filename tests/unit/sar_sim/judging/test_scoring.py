"""Each definition on hand-made reports: what is an issue, when it is right, and what does not count."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sar_sim.judging.scoring import Hearing, Judged, Owner, Report, ReportScorer, fixes
from sar_sim.judging.scoring import ReportVerdict as Verdict

PHONE, WATCH, DECOY = 7, 8, 9
BEGIN, END = 10.0, 100.0


@pytest.fixture
def scorer() -> ReportScorer:
    """Two victims: one at the origin, one 200 m east."""
    return ReportScorer({PHONE: Owner(0, 0.0, 0.0), WATCH: Owner(1, 200.0, 0.0)})


def report(time_s: float, x: float, address: int = PHONE, confidence: float = 0.9, drone: int = 0) -> Report:
    return Report(time_s, drone, address, x, 0.0, confidence, 1.5, 1.2, 4.0, views=2)


def judge(scorer: ReportScorer, *reports: Report) -> list[Judged]:
    return [judged for one in reports for judged in scorer.judge([one], BEGIN, END)]


def verdicts(judged: list[Judged]) -> list[tuple[str, bool]]:
    return [(str(one.verdict), one.update) for one in judged]


def test_twelve_metres_off_is_displaced_and_no_false_alarm(scorer):
    assert verdicts(judge(scorer, report(20.0, 12.0))) == [("displaced", False)]
    assert (
        scorer.count(Verdict.DISPLACED),
        scorer.count(Verdict.DECOY),
        scorer.count(Verdict.RIGHT),
    ) == (1, 0, 0)
    assert scorer.issues[0].error_m == 12.0 and scorer.issues[0].victim == 0


def test_ten_metres_is_right_and_a_little_more_is_not(scorer):
    (judged,) = judge(scorer, report(20.0, 10.0))
    assert judged.verdict is Verdict.RIGHT
    (other,) = judge(scorer, report(20.0, 189.999, WATCH))
    assert other.verdict is Verdict.DISPLACED


def test_a_decoy_is_a_decoy_even_beside_a_victim(scorer):
    (judged,) = judge(scorer, report(20.0, 0.0, DECOY))
    assert judged.verdict is Verdict.DECOY and judged.error_m is None and judged.victim is None


def test_a_device_is_held_to_its_own_victim_not_to_the_nearest(scorer):
    (judged,) = judge(scorer, report(20.0, 200.0, PHONE))
    assert judged.verdict is Verdict.DISPLACED and judged.error_m == 200.0


def test_after_the_search_nothing_counts(scorer):
    assert judge(scorer, report(END, 0.0)) != []
    assert judge(scorer, report(END + 0.05, 0.0, WATCH), report(END + 9.0, 0.0, DECOY)) == []
    assert len(scorer.issues) == 1 and scorer.sightings.keys() == {PHONE}


def test_what_was_reported_before_the_search_stands_when_it_begins(scorer):
    early = [report(4.0, 40.0), report(6.0, 30.0), report(6.0, 0.0, DECOY, confidence=0.5)]
    assert scorer.judge(early, math.inf, math.inf) == []
    (judged,) = scorer.judge([], BEGIN, math.inf)
    assert judged.error_m == 30.0 and judged.report.time_s == BEGIN and not judged.update
    assert scorer.sightings[DECOY].first.time_s == BEGIN and scorer.sightings[DECOY].issue is None


def test_two_drones_first_reports_are_one_issue_and_an_update(scorer):
    told = judge(scorer, report(20.0, 30.0, drone=0), report(20.0, 3.0, drone=1))
    assert verdicts(told) == [("displaced", False), ("right", True)]
    assert len(scorer.issues) == 1 and scorer.issues[0].report.drone == 0


def test_what_is_not_confident_enough_is_no_issue(scorer):
    assert judge(scorer, report(20.0, 0.0, confidence=0.85)) == []
    assert scorer.issues == [] and scorer.sightings[PHONE].first is not None


def test_an_issue_that_drifts_right_is_settled_then_and_not_found(scorer):
    judge(scorer, report(20.0, 30.0), report(30.0, 8.0), report(40.0, 12.0), report(50.0, 6.0), report(60.0, 2.0))
    sighting = scorer.sightings[PHONE]
    assert sighting.issue.verdict is Verdict.DISPLACED and sighting.issue.error_m == 30.0
    assert sighting.settled_s == 50.0 and sighting.latest.error_m == 2.0


def test_an_issue_that_drifts_away_is_found_and_not_settled(scorer):
    judge(scorer, report(20.0, 5.0), report(30.0, 11.0))
    sighting = scorer.sightings[PHONE]
    assert sighting.issue.verdict is Verdict.RIGHT and sighting.settled_s is None and sighting.latest.error_m == 11.0


def test_a_report_that_lost_confidence_moves_no_pin(scorer):
    judge(scorer, report(20.0, 5.0), report(30.0, 50.0, confidence=0.6))
    assert scorer.sightings[PHONE].settled_s == 20.0 and scorer.sightings[PHONE].latest.error_m == 5.0


def test_heard_is_what_a_drone_observed_inside_the_search(scorer):
    for time_s, drone in ((5.0, 0), (20.0, 1), (30.0, 2), (END + 1.0, 3)):
        scorer.listen(time_s, [Hearing(drone, DECOY, usable=drone != 1)], BEGIN, END)
    assert scorer.sightings[DECOY].heard_s == 20.0 and scorer.sightings[DECOY].hearers == {2}


def test_drones_with_usable_observations_back_what_is_issued(scorer):
    scorer.listen(20.0, [Hearing(0, PHONE, True), Hearing(1, PHONE, False), Hearing(2, DECOY, True)], BEGIN, END)
    assert scorer.backing == set()
    judge(scorer, report(21.0, 0.0))
    assert scorer.backing == {0}
    scorer.listen(22.0, [Hearing(3, PHONE, True)], BEGIN, END)
    judge(scorer, report(23.0, 0.0))
    assert scorer.backing == {0, 3}


def test_adr_149_counts_the_whole_mission(scorer):
    scorer.judge([report(4.0, 40.0)], math.inf, math.inf)
    judge(scorer, report(20.0, 3.0), report(END + 5.0, 0.0, DECOY))
    assert {a: r.time_s for a, r in scorer.mission_first.items()} == {PHONE: 4.0, DECOY: END + 5.0}


def test_what_was_held_at_fixed_times_is_the_latest_report_of_any_confidence():
    history = [report(t, x, confidence=c) for t, x, c in ((25.0, 50.0, 0.2), (40.0, 9.0, 0.9), (41.0, 20.0, 0.4))]
    held = fixes(history, BEGIN, 95.0)
    assert [(time_s, found.x) for time_s, found in held] == [(30.0, 9.0), (60.0, 20.0), (90.0, 20.0)]
    assert fixes([], BEGIN, 95.0) == [] and fixes([replace(history[0], time_s=90.0)], BEGIN, 79.0) == []
