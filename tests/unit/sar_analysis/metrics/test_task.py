"""What belongs to the task and what to whoever flies it; that references heed it is tested with the optimality gap."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.metrics.task import TASK, task_of, task_sha256
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return prepare(Scenario(), 3, 5).resolved()


def test_every_part_of_the_task_is_in_a_resolved_configuration(configuration: dict[str, Any]) -> None:
    assert set(TASK) <= configuration.keys() and "wind_mps" in configuration
    assert None not in {task_of(configuration)[key] for key in ("tier", "world_sha256", "drones", "wind_mps")}


@pytest.mark.parametrize("key", TASK)
def test_another_task_has_another_hash(key: str, configuration: dict[str, Any]) -> None:
    assert task_sha256(configuration | {key: "another"}) != task_sha256(configuration)


@pytest.mark.parametrize("key", ["seed", "episode", "sigma", "kappa", "pattern", "pursuit", "gate", "attention"])
def test_how_it_is_flown_is_no_part_of_it(key: str, configuration: dict[str, Any]) -> None:
    assert task_sha256(configuration | {key: "another"}) == task_sha256(configuration)


@given(st.floats(0.0, 12.0), st.floats(-math.pi, math.pi))
def test_of_the_wind_only_its_strength_counts(strength: float, angle: float) -> None:
    wind = [strength * math.cos(angle), strength * math.sin(angle), 0.0]
    assert task_of({"wind_mps": wind})["wind_mps"] == pytest.approx(strength, abs=1e-6)
    assert task_of({"wind_mps": strength})["wind_mps"] == pytest.approx(strength, abs=1e-6)


def test_an_unknown_wind_is_not_still_air() -> None:
    assert task_of({})["wind_mps"] is None
    assert task_sha256({}) != task_sha256({"wind_mps": 0.0})
