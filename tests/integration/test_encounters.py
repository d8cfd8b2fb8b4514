"""Encounters of real vehicles on a lossy link: with the safety layer nobody collides or is late, without it they do."""

from __future__ import annotations

import pytest

from sar_core.errors import InputError
from sar_eval.cli.swarm import encounters_table
from sar_eval.studies.encounters import KINDS, draw_courses, fly_encounter, study, summarise

SEEDS = range(20_000, 20_012)


@pytest.mark.parametrize("kind", KINDS)
def test_with_the_layer_all_arrive_in_time_and_apart(kind: str) -> None:
    results = study([kind], SEEDS, True)
    assert [r.seed for r in results if r.collisions] == []
    assert [r.seed for r in results if not r.in_time] == []
    assert min(r.min_separation_m for r in results) > 1.5


def test_two_that_turn_towards_each_other_keep_apart() -> None:
    """These four collided when each drone judged the miss by its own present velocity."""
    results = [fly_encounter("turning", seed) for seed in (10_027, 10_056, 10_166, 10_257)]
    assert [r.seed for r in results if r.collisions or not r.in_time] == []


def test_without_the_layer_they_collide() -> None:
    rows = summarise(study(["head_on", "four_way"], SEEDS, False))
    assert all(row.with_collision >= 6 for row in rows)
    assert encounters_table(study(["head_on"], SEEDS[:1], False)).row_count == 1


def test_an_encounter_repeats_itself() -> None:
    assert fly_encounter("crossing", 20_100) == fly_encounter("crossing", 20_100)
    assert fly_encounter("crossing", 20_100) != fly_encounter("crossing", 20_101)


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="head_on"):
        draw_courses("sideways", 0)
