"""Our vehicle against flights of a real PX4: same airframe, same parameters, same setpoints, nothing fitted.

The median over 20 seeds lies inside the range seen on the real autopilot, widened by 5 % (overshoot by 2 points).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_eval.scenario.prepare import load_named_vehicle
from sar_eval.studies.fly import COLUMNS, Script, fly_script, read_script

from .manoeuvres import DATA, RECORDINGS, Floats, figures, read_trace

SEEDS = 20

# Seen over several runs of the real vehicle; data/README.md.
SEEN = {
    "pos_step_x10m": {
        "t10_s": (0.74, 0.86),
        "t50_s": (1.6, 1.8),
        "t90_s": (2.8, 3.2),
        "overshoot_pct": (3.0, 7.0),
        "peak_rate": (4.8, 5.4),
    },
    "vel_step_3ms": {"t50_s": (0.68, 0.70), "after_6s_mps": (2.57, 2.60)},
    "yaw_step_90deg": {
        "t50_s": (0.66, 0.66),
        "t90_s": (0.92, 0.95),
        "overshoot_pct": (17.0, 18.0),
        "peak_rate": (140.0, 140.0),
    },
    "pos_step_z5m_up": {"t90_s": (2.6, 2.8), "peak_rate": (2.65, 2.65)},
}


def allowed(name: str, figure: str) -> tuple[float, float]:
    """The seen range, or where none is written down that of the recordings here, widened."""
    if figure in SEEN.get(name, {}):
        low, high = SEEN[name][figure]
    else:
        values = [figures(name, read_trace(DATA / f"{name}{suffix}.csv"))[figure] for suffix in RECORDINGS]
        low, high = min(values), max(values)
    if figure == "overshoot_pct":
        return low - 2.0, high + 2.0
    return 0.95 * low, 1.05 * high


def flown(name: str) -> list[dict[str, float]]:
    vehicle = load_named_vehicle("sihsim_quadx")
    script = read_script(DATA / f"{name}.csv")
    traces = (fly_script(script, vehicle, seed) for seed in range(SEEDS))
    return [figures(name, dict(zip(COLUMNS, trace.T, strict=True))) for trace in traces]


@pytest.mark.parametrize("name", ["pos_step_x10m", "pos_step_z5m_up", "vel_step_3ms", "yaw_step_90deg", "hover30s"])
def test_manoeuvre_lies_within_what_the_real_px4_does(name: str) -> None:
    runs = flown(name)
    report = []
    for figure in runs[0]:
        median = float(np.median([run[figure] for run in runs]))
        low, high = allowed(name, figure)
        report.append((figure, median, low, high, low <= median <= high))
    print(*(f"{name} {f}: {m:.3f} in [{lo:.3f}, {hi:.3f}]" for f, m, lo, hi, _ in report), sep="\n")
    outside = [row for row in report if not row[-1]]
    assert not outside, f"{name}: outside the recorded range: {outside}"


def test_descent_is_limited_as_on_the_real_px4() -> None:
    t = np.arange(0.0, 8.0, 0.02)
    setpoints = np.full((len(t), 11), np.nan)
    setpoints[:, 0:3] = (0.0, 0.0, -20.0)
    setpoints[t >= 1.0, 2] = -15.0
    setpoints[:, 9] = 0.0
    script = Script(t, setpoints, np.array([0.0, 0.0, -20.0]), on_ground=False)
    vehicle = load_named_vehicle("sihsim_quadx")
    peaks = [_peak_descent(fly_script(script, vehicle, seed)) for seed in range(SEEDS)]
    assert 0.95 * 1.5 <= np.median(peaks) <= 1.05 * 1.5


def _peak_descent(trace: Floats) -> float:
    return float(np.max(trace[:, COLUMNS.index("vz")]))


def test_takeoff_by_position_setpoint_reaches_and_holds_the_altitude() -> None:
    t = np.arange(0.0, 20.0, 0.05)
    setpoints = np.full((len(t), 11), np.nan)
    setpoints[:, 0:3] = (0.0, 0.0, -10.0)
    setpoints[:, 9] = 0.0
    script = Script(t, setpoints, np.zeros(3), on_ground=True)
    trace = fly_script(script, load_named_vehicle("sihsim_quadx"), 0)
    height = -trace[:, COLUMNS.index("gt_z")]
    assert height[t < 1.0].max() < 0.05, "the motors spool up for a second before anything moves"
    assert abs(np.mean(height[t > 15.0]) - 10.0) < 1.0


def test_without_noise_a_hover_stands_still() -> None:
    script = read_script(DATA / "hover30s.csv")
    trace = fly_script(script, load_named_vehicle("sihsim_quadx"), 0, with_noise=False)
    for axis in ("gt_x", "gt_y", "gt_z"):
        column = trace[:, COLUMNS.index(axis)]
        assert np.ptp(column[trace[:, 0] > 15.0]) < 0.01


def test_a_trace_written_is_a_script_readable(tmp_path: Path) -> None:
    from sar_eval.studies.fly import write_trace

    script = read_script(DATA / "yaw_step_90deg.csv")
    write_trace(tmp_path / "trace.csv", fly_script(script, load_named_vehicle("sihsim_quadx"), 3))
    again = read_script(tmp_path / "trace.csv")
    np.testing.assert_allclose(again.times, script.times, atol=1e-3)
    np.testing.assert_allclose(again.setpoints[:, :7], script.setpoints[:, :7], atol=1e-5)
