"""Frame changes against scipy's rotations, and round trips."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sar_core.frames import quat_multiply, swap_attitude, swap_body, swap_world, swap_yaw, wrap_pi, yaw_of

Floats = NDArray[np.float64]

NED_TO_ENU = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
FLU_TO_FRD = np.diag([1.0, -1.0, -1.0])

VECTORS = arrays(np.float64, (4, 3), elements=st.floats(-1e4, 1e4))
ROTATIONS = st.integers(0, 2**32 - 1).map(
    lambda seed: Rotation.from_quat(np.random.default_rng(seed).normal(size=(5, 4)))
)
ANGLES = st.floats(-50.0, 50.0)


def wxyz(rotation: Rotation) -> Floats:
    return np.roll(rotation.as_quat(), 1, axis=-1)


def from_wxyz(q: Floats) -> Rotation:
    return Rotation.from_quat(np.roll(q, -1, axis=-1))


def test_axes_by_name() -> None:
    np.testing.assert_array_equal(swap_world(np.array([1.0, 2.0, 3.0])), [2.0, 1.0, -3.0])
    np.testing.assert_array_equal(swap_body(np.array([1.0, 2.0, 3.0])), [1.0, -2.0, -3.0])


@given(VECTORS)
def test_world_and_body_swaps_are_the_matrices_and_undo_themselves(v: Floats) -> None:
    np.testing.assert_array_equal(swap_world(v), v @ NED_TO_ENU.T)
    np.testing.assert_array_equal(swap_body(v), v @ FLU_TO_FRD.T)
    np.testing.assert_array_equal(swap_world(swap_world(v)), v)
    np.testing.assert_array_equal(swap_body(swap_body(v)), v)


@given(ROTATIONS, ROTATIONS)
def test_quaternion_product_composes_rotations(a: Rotation, b: Rotation) -> None:
    product = from_wxyz(quat_multiply(wxyz(a), wxyz(b)))
    np.testing.assert_allclose(product.as_matrix(), (a * b).as_matrix(), atol=1e-12)


@given(ROTATIONS)
def test_attitude_swap_is_the_change_of_both_bases(ned_from_frd: Rotation) -> None:
    swapped = swap_attitude(wxyz(ned_from_frd))
    expected = NED_TO_ENU @ ned_from_frd.as_matrix() @ FLU_TO_FRD
    np.testing.assert_allclose(from_wxyz(swapped).as_matrix(), expected, atol=1e-12)
    assert np.all(swapped[..., 0] >= 0.0)
    back = from_wxyz(swap_attitude(swapped)).as_matrix()
    np.testing.assert_allclose(back, ned_from_frd.as_matrix(), atol=1e-12)


@given(ROTATIONS, VECTORS)
def test_a_body_vector_means_the_same_in_both_conventions(ned_from_frd: Rotation, v_frd: Floats) -> None:
    v_frd = v_frd[:1]
    in_ned = ned_from_frd.apply(v_frd)
    in_enu = from_wxyz(swap_attitude(wxyz(ned_from_frd))).apply(swap_body(v_frd))
    np.testing.assert_allclose(in_enu, swap_world(in_ned), atol=1e-8)


@given(ANGLES, st.floats(-1.4, 1.4), st.floats(-3.0, 3.0))
def test_yaw_is_the_first_of_the_zyx_angles(yaw: float, pitch: float, roll: float) -> None:
    q = wxyz(Rotation.from_euler("ZYX", [yaw, pitch, roll]))
    error = math.remainder(float(yaw_of(q)) - yaw, 2 * math.pi)
    assert abs(error) < 1e-9


@given(ANGLES)
def test_a_level_attitude_and_its_yaw_swap_alike(yaw: float) -> None:
    q = wxyz(Rotation.from_euler("Z", yaw))
    error = math.remainder(float(yaw_of(swap_attitude(q))) - float(swap_yaw(yaw)), 2 * math.pi)
    assert abs(error) < 1e-9
    assert abs(math.remainder(float(swap_yaw(swap_yaw(yaw))) - yaw, 2 * math.pi)) < 1e-12 * (1 + abs(yaw))


def test_north_and_east_headings() -> None:
    assert float(swap_yaw(0.0)) == math.pi / 2
    assert float(swap_yaw(math.pi / 2)) == 0.0


@given(ANGLES | st.sampled_from([-math.pi, math.pi, math.nextafter(-math.pi, -9), math.nextafter(math.pi, 0), 3e5]))
def test_wrapped_angles_stay_in_range_and_keep_their_direction(angle: float) -> None:
    wrapped = float(wrap_pi(angle))
    assert -math.pi <= wrapped < math.pi
    assert abs(math.remainder(wrapped - angle, 2 * math.pi)) < 1e-9
