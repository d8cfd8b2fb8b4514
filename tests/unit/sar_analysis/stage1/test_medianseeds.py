"""The median seeds, held to a brute force that shares no code, and to the tie rule."""

from __future__ import annotations

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.stage1.medianseeds import choose
from sar_analysis.stage1.rows import Stage1Row
from sar_core.errors import InputError, MissingDataError


def table(returns: dict[str, dict[int, list[float]]]) -> list[Stage1Row]:
    """Rows from policy -> seed -> returns by episode."""
    return [
        Stage1Row(policy=policy, seed=seed, episode=episode, episode_return=value)
        for policy, by_seed in returns.items()
        for seed, values in by_seed.items()
        for episode, value in enumerate(values)
    ]


def middle_mean(values: list[float]) -> float:
    """The mean of what is left when a quarter (rounded down) is cut from either end."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    return statistics.fmean(ordered[cut : len(ordered) - cut])


def brute_force(returns: dict[str, dict[int, list[float]]], count: int) -> tuple[int, ...]:
    """Of all sets of so many seeds the one whose sorted (distance, seed) list comes first."""
    seeds = sorted(next(iter(returns.values())))
    figure = {s: middle_mean([v for by_seed in returns.values() for v in by_seed[s]]) for s in seeds}
    median = statistics.median(figure.values())
    away = {s: round(abs(figure[s] - median), 9) for s in seeds}
    best = min(itertools.combinations(seeds, count), key=lambda chosen: sorted((away[s], s) for s in chosen))
    return tuple(sorted(best))


VALUE = st.integers(-50, 50).map(float)


@given(st.data(), st.integers(1, 7), st.integers(1, 3), st.integers(1, 6))
def test_the_choice_is_the_brute_forces(data: st.DataObject, seeds: int, policies: int, episodes: int) -> None:
    numbers = data.draw(st.lists(st.integers(0, 99), min_size=seeds, max_size=seeds, unique=True))
    values = st.lists(VALUE, min_size=episodes, max_size=episodes)
    returns = {f"p{p}": {s: data.draw(values) for s in numbers} for p in range(policies)}
    count = data.draw(st.integers(1, seeds))
    assert choose(table(returns), count).seeds == brute_force(returns, count)
    for pick in choose(table(returns), count, per_policy=True).picks:
        assert pick.policy is not None
        assert pick.seeds == brute_force({pick.policy: returns[pick.policy]}, count)


def test_ties_go_to_the_lower_seed_whatever_the_order_of_the_file() -> None:
    """Median 20: seeds 7 and 2 are 1 away, 4 and 9 are 10 away; of each pair the lower comes first."""
    rows = table({"p": {9: [30.0], 7: [21.0], 4: [10.0], 2: [19.0]}})
    assert choose(rows, 1).seeds == (2,)
    assert choose(rows, 3).seeds == (2, 4, 7)
    assert choose(list(reversed(rows)), 3) == choose(rows, 3)


def test_a_tie_is_not_broken_by_float_noise() -> None:
    """0.1 + 0.2 against 0.3: both seeds lie equally far from the median but for the last bit."""
    rows = table({"p": {5: [0.3], 3: [0.1 + 0.2], 8: [0.0], 1: [0.6]}})
    assert choose(rows, 1).seeds == (3,)


def test_policies_are_pooled_before_the_seeds_are_ranked() -> None:
    """Apart, each policy prefers another seed; together the middle one is seed 1."""
    returns = {"a": {0: [0.0], 1: [50.0], 2: [10.0]}, "b": {0: [20.0], 1: [-20.0], 2: [90.0]}}
    assert choose(table(returns), 1).seeds == (1,)
    assert [pick.seeds for pick in choose(table(returns), 1, per_policy=True).picks] == [(2,), (0,)]


def test_the_list_it_chose_from_is_told() -> None:
    (pick,) = choose(table({"p": {0: [1.0, 3.0], 1: [5.0, 5.0], 2: [9.0, 9.0]}}), 1).picks
    assert (pick.policy, pick.median) == (None, 5.0)
    assert [(c.seed, c.return_iqm, c.episodes, c.distance, c.chosen) for c in pick.candidates] == [
        (0, 2.0, 2, 3.0, False),
        (1, 5.0, 2, 0.0, True),
        (2, 9.0, 2, 4.0, False),
    ]


def test_too_few_seeds_an_odd_count_and_an_unbalanced_table_are_refused() -> None:
    rows = table({"p": {0: [1.0], 4: [2.0]}})
    with pytest.raises(MissingDataError, match=r"3 seeds are wanted, but there are only 2 \(0, 4\)"):
        choose(rows)
    with pytest.raises(InputError, match=r"count = 0"):
        choose(rows, 0)
    with pytest.raises(MissingDataError, match=r"policy q, seed 0, episode 0 is missing"):
        choose(table({"p": {0: [1.0], 4: [2.0]}, "q": {4: [1.0]}}), 1)
    with pytest.raises(MissingDataError, match=r"no Stage-1 rows"):
        choose([])
