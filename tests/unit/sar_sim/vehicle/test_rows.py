"""Named groups as records: what compiled code reads and writes by name is what was put in."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sar_sim.vehicle.rows import SCRATCH, Scratch, as_record, make_rows

Floats = NDArray[np.float64]


class Inner(NamedTuple):
    gain: float
    arm: tuple[float, float, float]


class Outer(NamedTuple):
    inner: Inner
    mix: Floats


OUTER = Outer(Inner(2.0, (3.0, 5.0, 7.0)), np.arange(6.0).reshape(2, 3))


def test_a_record_holds_every_value_by_its_name() -> None:
    (record,) = as_record(OUTER)
    assert record["inner"]["gain"] == 2.0
    assert tuple(record["inner"]["arm"]) == OUTER.inner.arm
    assert np.array_equal(record["mix"], OUTER.mix)


def test_compiled_code_reads_and_writes_a_record_by_name() -> None:
    def turn(given: NDArray[np.void], scratch: NDArray[np.void]) -> None:
        outer, work = given[0], scratch[0]
        for k in range(3):
            work.command[k] = outer.inner.gain * outer.inner.arm[k] + outer.mix[1, k]

    scratch = np.zeros(1, dtype=SCRATCH)
    numba.njit(turn)(as_record(OUTER), scratch)
    assert scratch[0]["command"].tolist() == [9.0, 14.0, 19.0, 0.0]
    assert not any(scratch[0][name].any() for name in Scratch._fields if name != "command")


def test_fresh_vehicles_are_sound_and_have_no_order() -> None:
    rows = make_rows(3)
    assert {len(part) for part in rows} == {3}
    assert (rows.charge == 1.0).all() and (rows.scale == 1.0).all()
    assert np.isnan(rows.setpoints).all()
