"""Setpoint files: every refusal names row and column, and what is flown is what was asked for."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from sar_core.errors import InputError, RunError
from sar_eval.scenario.prepare import load_named_vehicle
from sar_eval.studies.fly import COLUMNS, SETPOINT_COLUMNS, Script, fly_script, read_script, write_trace
from sar_sim.vehicle import autopilot as ap

HEADER = ("t", *SETPOINT_COLUMNS)
HOVER = "0,0,0,-5,nan,nan,nan,0"


def written(folder: Path, *rows: str, header: tuple[str, ...] = HEADER) -> Path:
    path = folder / "script.csv"
    path.write_text("\n".join([",".join(header), *rows]) + "\n", encoding="utf-8")
    return path


def test_setpoints_are_taken_in_the_autopilots_order(tmp_path: Path) -> None:
    script = read_script(written(tmp_path, "0,1,2,-5,4,5,6,7", "0.5,nan,nan,nan,nan,nan,nan,nan"))
    assert script.times.tolist() == [0.0, 0.5]
    assert script.setpoints[0, :6].tolist() == [1.0, 2.0, -5.0, 4.0, 5.0, 6.0]
    assert script.setpoints[0, ap.SP_YAW] == 7.0
    assert np.isnan(script.setpoints[1]).all() and not script.on_ground
    assert script.start.tolist() == [1.0, 2.0, -5.0]


def test_it_starts_where_the_vehicle_was_rather_than_where_it_is_told_to_go(tmp_path: Path) -> None:
    path = written(tmp_path, f"3,4,-0.2,{HOVER}", f"3,4,-0.2,0.5{HOVER[1:]}", header=("x", "y", "z", *HEADER))
    script = read_script(path)
    assert script.start.tolist() == [3.0, 4.0, -0.2] and script.on_ground


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([HOVER], "1 rows; a flight needs at least 2"),
        ([HOVER, HOVER], "row 2, t = 0: times are finite, begin at 0 or later and grow"),
        (["-1" + HOVER[1:], HOVER], "row 1, t = -1"),
        (["nan" + HOVER[1:], HOVER], "row 1, t = nan"),
        ([HOVER, "1,0,0,up,nan,nan,nan,0"], "row 2, sp_z = 'up': not a number; nan means not commanded"),
        ([HOVER, "1,0,0,,nan,nan,nan,0"], "row 2, sp_z = '': not a number"),
        ([HOVER, "1,0,0,-500000,nan,nan,nan,0"], "row 2, sp_z = -500000: allowed are nan and -100000 to 100000"),
        ([HOVER, "1,0,0,inf,nan,nan,nan,0"], "row 2, sp_z = inf"),
        ([HOVER, "1,0"], "row 2, sp_y = '': not a number"),
        (["0,nan,0,-5,1,0,0,0", "1,nan,0,-5,1,0,0,0"], "the first row has neither x y z nor sp_x sp_y sp_z"),
    ],
)
def test_a_script_is_refused_by_row_and_column(rows: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_script(written(tmp_path, *rows))
    assert str(caught.value).startswith(f"{tmp_path / 'script.csv'}: {said}")


def test_a_missing_column_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="column 'sp_yaw' is missing"):
        read_script(written(tmp_path, HOVER, HOVER, header=HEADER[:-1]))
    with pytest.raises(InputError, match=r"none\.csv: cannot read the setpoint file \(No such file"):
        read_script(tmp_path / "none.csv")
    (tmp_path / "odd.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"odd\.csv: cannot read the setpoint file"):
        read_script(tmp_path / "odd.csv")


def flown(seed: int, with_noise: bool, to_north_m: float = 2.0) -> np.ndarray:
    times = np.arange(0.0, 4.01, 0.25)
    setpoints = np.full((len(times), ap.SETPOINT), math.nan)
    setpoints[:, :3] = to_north_m, 0.0, -10.0
    setpoints[:, ap.SP_YAW] = 0.0
    setpoints[0, 0] = 0.0
    script = Script(times, setpoints, np.array([0.0, 0.0, -10.0]), on_ground=False)
    return fly_script(script, load_named_vehicle("x500"), seed, with_noise)


def test_a_vehicle_flies_towards_its_setpoint_and_the_trace_has_the_scripts_times() -> None:
    trace = flown(1, with_noise=False)
    column = {name: trace[:, k] for k, name in enumerate(COLUMNS)}
    assert column["t"].tolist() == np.arange(0.0, 4.01, 0.25).tolist()
    assert abs(column["gt_x"][0]) < 0.05 and column["gt_x"][-1] == pytest.approx(2.0, abs=0.5)
    assert np.abs(column["gt_y"]).max() < 0.05 and column["gt_z"] == pytest.approx(-10.0, abs=0.2)


def test_noise_is_the_seeds_alone() -> None:
    first, again, other = (flown(seed, with_noise=True) for seed in (1, 1, 2))
    assert np.array_equal(first, again, equal_nan=True) and not np.array_equal(first, other, equal_nan=True)


def test_a_trace_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    trace = np.full((2, len(COLUMNS)), 1.23456789)
    write_trace(tmp_path / "trace.csv", trace)
    with open(tmp_path / "trace.csv", newline="") as stream:
        header, *rows = csv.reader(stream)
    assert tuple(header) == COLUMNS and rows[0][:2] == ["1.235", "1.23457"] and len(rows) == 2
    with pytest.raises(RunError, match="cannot write the trace"):
        write_trace(tmp_path / "no" / "trace.csv", trace)
    assert [item.name for item in tmp_path.iterdir()] == ["trace.csv"]
