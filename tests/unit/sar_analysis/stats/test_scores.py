"""A table of scores is complete or says why not."""

from __future__ import annotations

import numpy as np
import pytest

from sar_analysis.stats.scores import Cell, from_cells, of_matrix, on_common_episodes
from sar_core.errors import InputError, MissingDataError


def cells(seeds: int = 3, episodes: int = 4) -> list[Cell]:
    """Seed 10 s, episode e has value 10 s + e; even and odd episodes are two noise levels."""
    return [Cell(s, e, 10.0 * s + e, level=e % 2) for e in range(episodes) for s in range(seeds)]


def test_cells_in_any_order_make_the_crossed_table() -> None:
    scores = from_cells("return", reversed(cells()))
    np.testing.assert_array_equal(scores.values, [[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]])
    assert (scores.levels, scores.layouts, scores.notes) == ((0, 1, 0, 1), (0, 1, 2, 3), ())
    np.testing.assert_array_equal(scores.at_level(1).values, [[1, 3], [11, 13], [21, 23]])


def test_a_missing_seed_is_refused_by_name_or_dropped_with_a_note() -> None:
    holed = [c for c in cells() if (c.seed, c.episode) != (1, 2)]
    with pytest.raises(MissingDataError, match="return: 1 of 12 cells have no value: seed 1 episode 2"):
        from_cells("return", holed)
    scores = from_cells("return", holed, drop_incomplete=True)
    assert scores.episodes == (0, 1, 3)
    assert scores.notes == ("1 of 4 episodes left out: no value for every seed",)
    invalid = [*holed, Cell(1, 2, None, level=0, valid=False)]
    assert from_cells("return", invalid, True).notes == ("1 of 4 episodes left out: not valid for every seed",)
    undefined = [*holed, Cell(1, 2, None, level=0)]
    assert from_cells("return", undefined, True).notes == ("1 of 4 episodes left out: no value for every seed",)


def test_an_invalid_episode_is_a_hole_not_a_number() -> None:
    with pytest.raises(MissingDataError, match="seed 0 episode 9"):
        from_cells("return", [*cells(1), Cell(0, 9, None)])
    with pytest.raises(MissingDataError, match="no episode has a value for all 1 seeds"):
        from_cells("return", [Cell(0, 9, None)], drop_incomplete=True)


def test_tables_that_lost_other_episodes_pair_on_what_is_left() -> None:
    first, second = from_cells("a", cells()), from_cells("b", [c for c in cells() if c.episode != 2])
    first, second = on_common_episodes([first, second])
    assert first.episodes == second.episodes == (0, 1, 3)
    np.testing.assert_array_equal(first.values, second.values)
    assert first.notes == ("1 of 4 episodes left out: not in every compared table",) and second.notes == ()
    with pytest.raises(MissingDataError, match="a, b: no episode is common to all tables"):
        on_common_episodes([first.on([0]), second.on([1])])


def test_columns_pair_by_level_and_layout_whatever_their_numbers() -> None:
    first = from_cells("a", [Cell(s, c, 1.0 * c, level=c // 3, layout=c % 3) for s in range(2) for c in range(6)])
    shifted = [Cell(s, c - 1, 1.0 * c, level=c // 3, layout=c % 3) for s in range(2) for c in range(1, 6)]
    first, second = on_common_episodes([first, from_cells("b", shifted)])
    assert (first.episodes, first.levels, first.layouts) == (second.episodes, second.levels, second.layouts)
    np.testing.assert_array_equal(first.values, second.values)


def test_duplicates_nothing_and_nonsense_are_refused() -> None:
    with pytest.raises(InputError, match="seed 0, episode 0 appears twice"):
        from_cells("return", [*cells(), Cell(0, 0, 5.0)])
    with pytest.raises(MissingDataError, match="no episodes"):
        from_cells("return", [])
    with pytest.raises(InputError, match="episode 1 has several noise levels or layouts"):
        from_cells("return", [Cell(0, 1, 5.0, "low"), Cell(1, 1, 5.0, "high")])
    with pytest.raises(InputError, match="1 values are not numbers: seed 0 episode 1"):
        of_matrix("return", np.array([[1.0, np.nan]]))
    with pytest.raises(InputError, match=r"shape \(0, 3\)"):
        of_matrix("return", np.zeros((0, 3)))
    with pytest.raises(InputError, match="2 levels for a table of shape"):
        of_matrix("return", np.zeros((2, 3)), levels=[1, 2])
    with pytest.raises(InputError, match="no noise level 7; allowed: 0, 1"):
        from_cells("return", cells()).at_level(7)
