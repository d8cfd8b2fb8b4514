"""The true state from published poses: composition, velocities, and instants that are whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from sar_core.errors import RunError
from sar_gazebo.truth import Assembly, hull_pose
from tests.unit.sar_gazebo.standins import PoseMsg, QuaternionMsg, Vector3d

PERIOD_NS = 20_000_000
angles = st.tuples(*[st.floats(-3.0, 3.0)] * 3)
places = st.tuples(*[st.floats(-200.0, 200.0)] * 3)


def quaternion(rotation: Rotation) -> list[float]:
    x, y, z, w = rotation.as_quat()
    return [w, x, y, z]


def pose(name: str, place: Any, rotation: Rotation) -> PoseMsg:
    w, x, y, z = quaternion(rotation)
    return PoseMsg(name, Vector3d(*place), QuaternionMsg(x, y, z, w))


def row(place: Any, rotation: Rotation) -> Any:
    return np.array([*place, *quaternion(rotation)])


@given(places, angles, places, angles)
def test_the_hull_is_where_scipy_puts_it(place: Any, turn: Any, inner: Any, inner_turn: Any) -> None:
    outer, link = Rotation.from_euler("xyz", turn), Rotation.from_euler("xyz", inner_turn)
    got = hull_pose("uav_1", [pose("uav_1", place, outer), pose("uav_1::base_link", inner, link)])
    np.testing.assert_allclose(got[:3], np.array(place) + outer.apply(inner), atol=1e-9)
    w, x, y, z = got[3:]
    assert (Rotation.from_quat([x, y, z, w]).inv() * (outer * link)).magnitude() < 1e-7


def test_a_message_without_the_hull_says_what_it_has() -> None:
    with pytest.raises(RunError, match=r"no 'uav_1' or no 'uav_1::base_link'; it has uav_1, uav_1::rotor_0"):
        hull_pose("uav_1", [pose(n, (0, 0, 0), Rotation.identity()) for n in ("uav_1", "uav_1::rotor_0")])


@given(places, st.floats(-2.0, 2.0), st.integers(0, 2))
def test_velocities_are_those_flown(velocity: Any, rate: float, axis: int) -> None:
    assembly = Assembly(1)
    step = np.array(velocity) * PERIOD_NS * 1e-9
    start = Rotation.from_euler("xyz", [0.2, -0.4, 1.0])
    body = np.eye(3)[axis] * rate
    assembly.add(0, 0, row((1.0, 2.0, 3.0), start))
    turned = start * Rotation.from_rotvec(body * PERIOD_NS * 1e-9)
    truth = assembly.add(PERIOD_NS, 0, row(np.array([1.0, 2.0, 3.0]) + step, turned))
    assert truth is not None
    np.testing.assert_allclose(truth.velocity[0], velocity, atol=1e-9)
    np.testing.assert_allclose(truth.rates[0], body, atol=1e-7)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_shorter_turn_counts(sign: float) -> None:
    assembly = Assembly(1)
    before, after = (Rotation.from_euler("z", a) for a in (math.pi - 0.01, -math.pi + 0.01))
    assembly.add(0, 0, row((0, 0, 0), before))
    truth = assembly.add(PERIOD_NS, 0, sign * row((0, 0, 0), after))
    assert truth is not None
    np.testing.assert_allclose(truth.rates[0], [0.0, 0.0, 1.0], atol=1e-9)


def test_an_instant_is_told_when_whole_and_dropped_when_it_never_is() -> None:
    assembly = Assembly(2)
    still = row((0.0, 0.0, 0.0), Rotation.identity())
    got = []
    for k in range(6):
        for drone in (1, 0):
            if (k, drone) != (2, 0):
                got.append(assembly.add(k * PERIOD_NS, drone, still))
    stamps = [truth.stamp_ns for truth in got if truth is not None]
    assert stamps == [k * PERIOD_NS for k in (1, 3, 4, 5)]
    assert assembly.dropped == 1
    assert assembly.add(0, 0, still) is None and assembly.dropped == 2, "what comes late is dropped"
