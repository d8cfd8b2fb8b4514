"""The radio beside what was measured: the files are read whole, and ours lies as near as the page says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sar_eval.scenario.prepare import radio_path
from sar_eval.scenario.resources import world_path
from sar_eval.studies.fieldcheck import (
    FieldCheck,
    chances,
    ground_rows,
    hear_phone,
    power_db,
    reach_of,
    table,
    turntable,
)
from sar_sim.radio.channel import make_scene
from sar_sim.radio.radioconfig import load_radio, make_budget
from sar_sim.world.world import load_world

FIELD = load_world(world_path("open_field"))
CONFIG = load_radio(radio_path("open_ground"))


def test_every_row_of_the_measured_files_is_read() -> None:
    rows = table("ground_rss")
    assert len(rows) == 9 and rows[-1] == {
        "distance_m": "384",
        "rssi_24dbm_lens": "-68",
        "rssi_24dbm_bare": "-76",
        "rssi_1dbm_lens": "-87",
        "rssi_1dbm_bare": "lost",
    }
    assert {row["scenario"] for row in table("working_range")} == {"LoS", "NLoS"}
    assert len(table("row_rate_and_gaps")) == 13


def test_ground_rows_follow_the_measured_ones_once_the_power_is_known() -> None:
    """Within 2.1 dB (rms); one row was lost, and so has no difference."""
    found = FieldCheck(tuple(ground_rows(CONFIG, FIELD)), (), (), (), {}, (), ())
    assert sum(row.measured_dbm is None for row in found.ground) == 1
    for power in (24.0, 1.0):
        assert found.rms_db(power, fitted=True) < 2.1
        assert found.rms_db(power) > found.rms_db(power, fitted=True)


def test_in_sight_the_power_is_that_of_free_space_and_the_grounds_echo() -> None:
    scene = make_scene(FIELD, CONFIG)
    away = 100.0
    free = -20.0 * math.log10(4.0 * math.pi * math.hypot(away, 29.5) * 2.437e9 / 299_792_458.0)
    got = power_db(scene, np.array([0.0, 0.0, 0.5]), np.array([away, 0.0, 30.0]))
    assert free < got < free + 3.02


def test_chances_fall_with_distance_and_a_handshake_outlives_a_frame() -> None:
    budget = make_budget(CONFIG)
    frames, joins = chances(budget, budget.midpoint_db + np.array([-12.0, -3.0, 0.0, 3.0, 30.0]))
    assert np.all(np.diff(frames) > 0.0) and np.all(np.diff(joins) > 0.0)
    assert frames[-1] == pytest.approx(1.0 - CONFIG.packet_loss) and joins[-1] == pytest.approx(1.0, abs=1e-3)
    assert joins[2] > 0.5 > frames[2], "seven tries to each frame"


@pytest.mark.parametrize(("radio", "measured_m"), [("open_ground", 298.8), ("near", 147.4)])
def test_discovery_is_where_it_was_measured(radio: str, measured_m: float) -> None:
    """Within 15 %."""
    found = reach_of(radio, FIELD)
    assert found.discovery_m == pytest.approx(measured_m, rel=0.15)
    assert found.ninety_m is not None and found.half_m is not None and found.ninety_m < found.half_m


def test_a_phone_is_heard_as_often_as_phones_were() -> None:
    near = hear_phone(CONFIG, FIELD, 40.0)
    assert 2.1 <= near.rate_hz <= 6.5
    assert 0.2 <= round(near.gap_median_s, 2) <= 0.3 and 0.3 <= near.gap_p90_s <= 1.2
    assert 3.0 <= near.longest_s <= 20.4


def test_no_bearing_is_better_than_the_best_measured() -> None:
    """ArrayTrack, continuous: 3.8 degrees in the median, 80 % within 6.5; noise only makes it worse."""
    clean, noisy = (turntable(CONFIG, FIELD, kappa) for kappa in (math.inf, 8.0))
    assert 3.8 <= round(clean.median_deg, 1) < 5.0 and clean.p80_deg >= 6.5
    assert noisy.median_deg > clean.median_deg and noisy.p80_deg > clean.p80_deg
