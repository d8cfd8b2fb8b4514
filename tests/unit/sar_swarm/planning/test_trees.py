"""The trees alone, without flood or shortcuts; what the planner makes of them is tested with the planner."""

from __future__ import annotations

import numpy as np
import pytest

from sar_core.geometry import box
from sar_swarm.planning.dice import seed
from sar_swarm.planning.planmap import plan_map
from sar_swarm.planning.trees import Search, packed, search, unpacked
from tests.unit.sar_swarm.plancheck import BOUNDS, Floats, least_clearance

PILLAR = np.array([box(30.0, 30.0, 12.0, 20.0, 20.0, 24.0)])
ROOM = np.array([box(30.0, 30.0, 12.0, 2.0, 80.0, 40.0)])
START, GOAL = np.array([5.0, 30.0, 12.0]), np.array([55.0, 30.0, 12.0])
GAP_M = 1.0


def grown(rows: Floats, how: Search, key: int = 1) -> tuple[bool, Floats, int, int]:
    """The obstacle in the way is number 0 in both worlds."""
    found: tuple[bool, Floats, int, int] = search(
        plan_map(rows, BOUNDS, 5.0), START, GOAL, GAP_M, how, 0, seed(np.uint64(key))
    )
    return found


@pytest.mark.parametrize("how", [Search(), Search(around=0.0), Search(rewire_m=0.0, strength=0.0)])
@pytest.mark.parametrize("key", range(5))
def test_a_way_round_is_clear_and_joins_the_ends(how: Search, key: int) -> None:
    met, points, iterations, checks = grown(PILLAR, how, key)
    assert met
    assert np.array_equal(points[0], START) and np.array_equal(points[-1], GOAL)
    assert least_clearance(PILLAR, points) >= GAP_M - 1e-6
    assert (points >= BOUNDS[:3]).all() and (points <= BOUNDS[3:]).all()
    assert 0 < iterations <= how.budget and checks > 0


def test_edges_are_no_longer_than_asked() -> None:
    """But the last, which joins the trees where they see each other."""
    _, points, _, _ = grown(PILLAR, Search(around=0.0, step_m=4.0, refine=0, rewire_m=0.0, strength=0.0))
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert (lengths <= 4.0 + 1e-9).sum() >= len(lengths) - 1


@pytest.mark.parametrize("budget", [1, 20, 100])
def test_without_a_way_the_budget_is_spent_and_nothing_returned(budget: int) -> None:
    met, points, iterations, _ = grown(ROOM, Search(budget=budget))
    assert not met and points.shape == (0, 3) and iterations == budget


def test_more_refining_never_makes_a_way_longer() -> None:
    lengths = []
    for refine in (0, 50, 300):
        points = grown(PILLAR, Search(around=0.0, refine=refine))[1]
        lengths.append(float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum()))
    assert lengths == sorted(lengths, reverse=True)


def test_a_search_survives_being_packed() -> None:
    how = Search(step_m=7.5, budget=3, refine=2, shortcuts=-1, lattice=0)
    assert unpacked(packed(how)) == how
