"""Draw our flights over the real PX4's: python -m tests.fidelity.overlay docs/images/fidelity.png"""

from __future__ import annotations

import sys

import matplotlib
import numpy as np

from sar_eval.scenario.prepare import load_named_vehicle
from sar_eval.studies.fly import COLUMNS, fly_script, read_script

from .manoeuvres import DATA, RECORDINGS, read_trace

matplotlib.use("Agg")
from matplotlib import pyplot

PANELS = (
    ("pos_step_x10m", "x", 1.0, "10 m step: x (m)", 12.0),
    ("pos_step_x10m", "vx", 1.0, "10 m step: speed (m/s)", 12.0),
    ("vel_step_3ms", "vx", 1.0, "3 m/s step: speed (m/s)", 13.0),
    ("yaw_step_90deg", "yaw", 180.0 / np.pi, "90° yaw step: yaw (°)", 6.0),
    ("pos_step_z5m_up", "z", -1.0, "5 m up: height (m)", 9.0),
    ("hover30s", "gt_y", 1.0, "hover: true y (m)", 30.0),
)
SEEDS = 20


def main(target: str) -> None:
    vehicle = load_named_vehicle("sihsim_quadx")
    flown = {}
    for name in {panel[0] for panel in PANELS}:
        script = read_script(DATA / f"{name}.csv")
        flown[name] = np.array([fly_script(script, vehicle, seed) for seed in range(SEEDS)])
    figure, axes = pyplot.subplots(2, 3, figsize=(12, 6.4), layout="constrained")
    for axis, (name, column, scale, title, end) in zip(axes.flat, PANELS, strict=True):
        ours = flown[name]
        t, k = ours[0, :, 0], COLUMNS.index(column)
        low, middle, high = np.percentile(scale * ours[:, :, k], (5, 50, 95), axis=0)
        axis.fill_between(t, low, high, color="#9ecae1", label="embedded, 5 to 95 % of 20 seeds")
        axis.plot(t, middle, color="#08519c", label="embedded, median")
        for suffix, colour in zip(RECORDINGS, ("#d94801", "#fd8d3c"), strict=True):
            real = read_trace(DATA / f"{name}{suffix}.csv")
            version = "v1.18" if suffix else "v1.17"
            axis.plot(real["t"], scale * real[column], color=colour, linewidth=1, label=f"real PX4 {version}")
        axis.set(title=title, xlabel="t (s)", xlim=(0, end))
        axis.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=8)
    figure.suptitle("The embedded vehicle and a real PX4 (SIH) on the same setpoints and parameters")
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
