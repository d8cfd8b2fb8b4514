"""Ranges of layouts: none overlap, none is left by accident, and what is drawn from them is never drawn twice."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sar_core.errors import InputError
from sar_eval.episode.pool import plan_missions
from sar_eval.scenario.episodeset import load_set
from sar_eval.scenario.model import EPISODE_SET, INDEX_LIMIT, SEED_LIMIT, Scenario
from sar_eval.scenario.resources import share_dir, world_path
from sar_eval.scenario.splits import CALIBRATION, CHECK, EVALUATION, FIT, SETS, SPLITS, TEST, TUNING, WIDE_SETS, Split
from sar_eval.stage1.fitflights import plan_flights
from sar_eval.studies.calibration import plan_calibration
from sar_sim.radio.devices import VERSIONS, make_devices
from sar_sim.world.world import load_world


def test_no_two_ranges_overlap() -> None:
    ordered = sorted(SPLITS, key=lambda split: split.first)
    assert all(a.end <= b.first for a, b in pairwise(ordered))
    assert all(split.size > 0 for split in SPLITS) and len({split.name for split in SPLITS}) == len(SPLITS)
    assert ordered[0].first == 0 and ordered[-1].end < min(INDEX_LIMIT, SEED_LIMIT)


def test_sets_draw_from_streams_that_no_single_mission_has() -> None:
    versions = range(1, 50)
    numbers = [base + version for base in (0, SETS, WIDE_SETS) for version in versions]
    assert len(set(numbers)) == len(numbers)
    assert min(SETS, WIDE_SETS) > EPISODE_SET and {number % VERSIONS for number in numbers} == set(versions)


@pytest.mark.parametrize("split", SPLITS, ids=lambda split: split.name)
def test_a_layout_beyond_a_range_is_refused_by_name(split: Split) -> None:
    assert (split.layout(0), split.layout(split.size - 1)) == (split.first, split.end - 1)
    for k in (-1, split.size):
        with pytest.raises(InputError, match=rf"layout {k} of split {split.name}: it has {split.size}, 0 to"):
            split.layout(k)


def test_whoever_plans_flights_stays_in_its_own_range() -> None:
    """The command fits on one range and checks on another; neither may run into the next."""
    planned = {
        CALIBRATION: plan_calibration("default", 40),
        FIT: plan_flights("village", 40, FIT),
        CHECK: plan_flights("village", 40, CHECK),
        EVALUATION: plan_missions(Scenario(), 40, EVALUATION.end - 40),
    }
    for split, specs in planned.items():
        assert all(split.first <= number < split.end for spec in specs for number in (spec.seed, spec.index))
    tiny = Split("tiny", 10, 6)
    with pytest.raises(InputError, match="layout 6 of split tiny"):
        plan_flights("village", 7, tiny)
    with pytest.raises(InputError, match="evaluations use seeds 0 to 999999"):
        plan_missions(Scenario(), 41, EVALUATION.end - 40)


def test_no_address_occurs_in_two_splits_or_sets() -> None:
    """Sampled: 40 layouts of each split in each world, and every committed set of version 2."""
    found: list[int] = []
    for name in ("open_field", "village", "forest", "collapsed_block"):
        world = load_world(world_path(name))
        for split in (EVALUATION, CALIBRATION, FIT, CHECK, TUNING, TEST):
            for k in (*range(20), *range(split.size - 20, split.size)):
                found += [d.address for d in make_devices(world, EPISODE_SET, split.layout(k), 2, 3)]
    for path in sorted((share_dir("configs") / "episodes").glob("*-v2.json")):
        found += [d.address for layout in load_set(path.stem).layouts for d in layout.devices]
    assert len(found) == 4 * 6 * 40 * 5 + (4 * 10 + 2 * 200) * 5
    assert len(set(found)) == len(found)
