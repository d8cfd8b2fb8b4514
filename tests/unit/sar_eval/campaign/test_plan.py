"""What a campaign flies: the product in a fixed order, any part of it, and what that costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import InputError
from sar_eval.campaign.plan import cost, flight_order, make_plan, parse_numbers, parse_shard, select
from sar_eval.scenario.model import Scenario
from tests.unit.sar_eval.campaign.desk import CHOICE


def test_the_plan_is_the_product_in_a_fixed_order(plan):
    assert len(plan) == 2 * 2 * 2 * 3
    assert len(set(plan.keys)) == 24
    assert plan.keys[:4] == (
        "village-v2-boustrophedon-2x-embedded-s004-e000",
        "village-v2-boustrophedon-2x-embedded-s004-e001",
        "village-v2-boustrophedon-2x-embedded-s004-e002",
        "village-v2-boustrophedon-2x-embedded-s001-e000",
    )
    assert plan.keys[-1] == "village-v2-spiral-2x-embedded-s001-e002-absent"
    for task in plan.tasks[::5]:
        assert task.prepare().episode_id == task.key


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seeds": ()}, "seeds"),
        ({"seeds": (1, 1)}, "none twice"),
        ({"seeds": (1_000_000,)}, "calibration"),
        ({"episodes": (50,)}, "0 to 49"),
        ({"victims": "some"}, "present, absent, both"),
        ({"patterns": ("zigzag",)}, "zigzag"),
        ({"worlds": ("atlantis",)}, "atlantis"),
        ({"episode_set": "v9"}, "village-v9"),
        ({"scenario": Scenario(victim_absent=True)}, "victim_absent"),
        ({"scenario": Scenario(kappa=3.0)}, "kappa"),
    ],
)
def test_what_cannot_be_flown_is_refused_before_anything_is(change, told):
    with pytest.raises(InputError, match=told):
        make_plan(replace(CHOICE, **change))


@given(n=st.integers(1, 9))
def test_shards_are_a_partition_of_about_equal_parts(plan, n):
    shards = [select(plan, (), (i, n)) for i in range(1, n + 1)]
    assert sorted(task.key for shard in shards for task in shard) == sorted(plan.keys)
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_filters_cut_down_and_their_values_add_up(plan):
    left = select(plan, ["pattern=spiral", "seed=1", "episode=0,2", "victims=absent"])
    assert len(left) == 2
    assert {(task.seed, task.index, task.scenario.victim_absent) for task in left} == {(1, 0, True), (1, 2, True)}
    for bad in ("seed=2", "pattern=lawn", "colour=red", "seed"):
        with pytest.raises(InputError):
            select(plan, [bad])


def test_numbers_and_shards_are_read_as_written():
    assert parse_numbers("7,0-2, 5", "seeds") == (7, 0, 1, 2, 5)
    assert parse_shard("2/8") == (2, 8)
    for text in ("", "a", "3-1", "-1", "1,,2"):
        with pytest.raises(InputError, match="seeds"):
            parse_numbers(text, "seeds")
    for text in ("0/2", "3/2", "1", "a/b"):
        with pytest.raises(InputError, match="shard"):
            parse_shard(text)


def test_a_campaign_half_flown_is_a_balanced_half(plan):
    ordered = flight_order(plan.tasks)
    assert {task.index for task in ordered[:8]} == {0}
    shuffled = flight_order(plan.tasks, shuffle=3)
    assert shuffled != ordered and sorted(t.key for t in shuffled) == sorted(plan.keys)
    assert shuffled == flight_order(plan.tasks, shuffle=3)


def test_cost_takes_the_speed_of_what_was_flown(plan):
    stated = cost(plan.tasks, 2, "none")
    measured = cost(plan.tasks, 2, "none", [{"wall_s": 2.0, "setup_s": 0.0, "rtf": 30.0}])
    assert stated.simulated_h == pytest.approx(24 * 95 / 3600)
    assert (stated.wall_h, measured.wall_h) == pytest.approx((24 * 95 / 60 / 2 / 3600, 24 * 95 / 30 / 2 / 3600))
    assert "stated" in stated.basis and "measured on 1 episode" in measured.basis
    assert cost(plan.tasks, 2, "all").disk_gb > 10 * stated.disk_gb


def test_real_autopilots_cost_their_own_pace(plan):
    paced = [replace(task, tier="sih", speed=1.5) for task in plan.tasks]
    price = cost(paced, 1, "all")
    assert price.wall_h == pytest.approx(price.simulated_h / 1.5)
