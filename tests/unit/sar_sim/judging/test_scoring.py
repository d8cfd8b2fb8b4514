"""Reports are judged by the written definitions: confidence above 0.85, 10 m, one alarm per transmitter."""

import numpy as np
import pytest

from sar_sim.judging.scoring import Report, ReportScorer

VICTIMS = np.array([[0.0, 0.0, 0.5], [100.0, 0.0, 0.5]])


def report(x: float, y: float, confidence: float = 0.9, address: int = 7, time_s: float = 1.0) -> Report:
    return Report(time_s, 0, address, x, y, confidence, 1.2)


@pytest.mark.parametrize(
    ("x", "confidence", "verdict"),
    [
        (9.99, 0.86, "detection"),
        (10.01, 0.86, "false_alarm"),
        (1.0, 0.85, None),
        (50.0, 0.85, None),
        (50.0, float("nan"), None),
    ],
)
def test_a_verdict_follows_the_definitions(x: float, confidence: float, verdict: str | None) -> None:
    assert ReportScorer(VICTIMS).judge(report(x, 0.0, confidence)) == verdict


def test_the_first_report_sets_the_time_and_the_last_the_final_error() -> None:
    scorer = ReportScorer(VICTIMS)
    for time_s, x in ((3.0, 6.0), (4.0, 2.0), (5.0, 3.0)):
        scorer.judge(report(x, 0.0, time_s=time_s))
    assert scorer.found.keys() == {0}
    found = scorer.found[0]
    assert (found.time_s, found.error_m, found.final_error_m, found.gdop) == (3.0, 6.0, 3.0, 1.2)


def test_the_nearest_victim_is_the_one_found() -> None:
    scorer = ReportScorer(VICTIMS)
    scorer.judge(report(96.0, 3.0))
    assert list(scorer.found) == [1]
    assert scorer.found[1].error_m == pytest.approx(5.0)


def test_a_transmitter_raises_one_false_alarm_however_often_it_is_reported() -> None:
    scorer = ReportScorer(VICTIMS)
    for k in range(5):
        scorer.judge(report(40.0 + k, 0.0, address=1))
    scorer.judge(report(60.0, 0.0, address=2))
    assert [a.address for a in scorer.false_alarms.values()] == [1, 2]
    assert scorer.false_alarms[1].distance_m == 40.0


def test_without_victims_every_confident_report_is_a_false_alarm() -> None:
    scorer = ReportScorer(np.empty((0, 3)))
    assert scorer.judge(report(0.0, 0.0)) == "false_alarm"
    assert scorer.false_alarms[7].distance_m is None
