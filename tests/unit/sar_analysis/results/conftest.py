"""The one measured mission that made-up campaigns start from."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from tests.unit.sar_analysis.bagmaker import Made, straight
from tests.unit.sar_analysis.missions import FOUND, MISSED


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> EpisodeMetrics:
    path = straight(4.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    made = Made(path, 1.0, 3.0, devices=[(7, 0, (20.0, 50.0, 0.5))])
    measured = episode_metrics(made.write(tmp_path_factory.mktemp("leaders") / "bag"))
    facts: dict[str, Any] = {"notes": (), "search_time_s": 240.0, "detections": 1, "victims": (FOUND, MISSED)}
    return dataclasses.replace(measured, **facts, time_to_first_detection_s=30.0, time_to_95_s=None)
