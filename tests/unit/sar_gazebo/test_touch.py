"""Gazebo's contacts as touches: who touched whom, from when to when, how deep."""

from __future__ import annotations

import pytest

from sar_gazebo.touch import REARM_NS, Touches, drone_of
from sar_sim.judging.referee import EventPhase
from tests.unit.sar_gazebo.standins import Contact, EntityMsg, Vector3d

STEP = 4_000_000


def contact(first: str, second: str, *depths: float) -> Contact:
    places = [Vector3d(float(i), 2.0, 3.0) for i in range(len(depths))]
    return Contact(EntityMsg(first), EntityMsg(second), places, list(depths))


def touches() -> Touches:
    return Touches(["tree_07", "house_01/link/body", "house_01/link/attic"])


@pytest.mark.parametrize(
    ("name", "drone"),
    [
        ("uav_1::base_link::hull", 0),
        ("uav_12::rotor_0::rotor_0_collision", 11),
        ("uav_0::base_link::hull", None),
        ("uav_1", None),
        ("house_uav_1::link::body", None),
        ("", None),
    ],
)
def test_drones_are_told_by_their_models_name(name: str, drone: int | None) -> None:
    assert drone_of(name) == drone


def test_one_touch_is_one_begin_and_one_end() -> None:
    book = touches()
    said = []
    for k in range(50):
        said += book.observe(k * STEP, [contact("house_01::link::attic", "uav_2::base_link::hull", 0.001 * k)])
    assert [(t.number, t.phase, t.drone, t.other, t.obstacle) for t in said] == [
        (1, EventPhase.BEGIN, 1, -1, "house_01/link/attic")
    ]
    assert book.settle(49 * STEP + REARM_NS) == []
    (end,) = book.settle(49 * STEP + REARM_NS + 1)
    assert (end.number, end.phase, end.begin_ns, end.end_ns) == (1, EventPhase.END, 0, 49 * STEP)
    assert end.depth_m == pytest.approx(0.049)
    assert book.finish() == []


def test_a_body_of_one_shape_has_its_models_name_as_in_the_world() -> None:
    (touch,) = touches().observe(0, [contact("uav_1::base_link::hull", "tree_07::link::trunk", 0.1)])
    assert touch.obstacle == "tree_07"


def test_the_deepest_point_is_kept() -> None:
    book = touches()
    book.observe(0, [contact("uav_1::base_link::hull", "tree_07::link::trunk", 0.1, 0.3, 0.2)])
    book.observe(STEP, [contact("uav_1::base_link::hull", "tree_07::link::trunk", 0.05)])
    (end,) = book.finish()
    assert (end.depth_m, end.position, end.end_ns) == (0.3, (1.0, 2.0, 3.0), STEP)


def test_two_drones_are_one_pair_in_either_order() -> None:
    book = touches()
    said = book.observe(0, [contact("uav_3::base_link::a", "uav_1::base_link::b", 0.1)])
    said += book.observe(STEP, [contact("uav_1::base_link::b", "uav_3::base_link::a", 0.1)])
    assert [(t.drone, t.other, t.obstacle) for t in said] == [(0, 2, "")]


def test_what_no_drone_touches_is_nobodys_business() -> None:
    book = touches()
    assert book.observe(0, [contact("tree_07::link::trunk", "house_01::link::body", 0.1)]) == []
    assert book.observe(0, [contact("uav_1::rotor_0::a", "uav_1::base_link::b", 0.1)]) == []


def test_a_touch_after_a_second_of_silence_is_another_one() -> None:
    book = touches()
    again = [contact("uav_1::base_link::hull", "tree_07::link::trunk")]
    said = [*book.observe(0, again), *book.observe(REARM_NS, again), *book.observe(3 * REARM_NS, again)]
    assert [(t.number, t.phase) for t in said] == [(1, EventPhase.BEGIN), (1, EventPhase.END), (2, EventPhase.BEGIN)]
