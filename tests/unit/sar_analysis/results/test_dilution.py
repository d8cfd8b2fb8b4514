"""Errors made of a known geometry: bands, correlations and views must find it again, and say where there is nothing."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from sar_analysis.results.dilution import BANDS, Looks, correlations, error_bands, errors_at, errors_by_views
from sar_core.errors import InputError

TIMES = (30.0, 60.0)


def made(layouts: int = 60, seed: int = 0) -> Looks:
    """Two looks at one victim per layout: error = information DOP times a draw, path GDOP has nothing to do with it."""
    rng = np.random.default_rng(seed)
    n = 2 * layouts
    information = rng.uniform(1.0, 20.0, n)
    gdop = 0.2 * information + rng.uniform(0.0, 1.5, n)
    gdop[::10] = math.nan
    return Looks(
        tuple(f"layout {k // 2}" for k in range(n)),
        np.tile(TIMES, layouts),
        information * rng.rayleigh(0.7, n),
        rng.uniform(1.0, 5.0, n),
        gdop,
        information,
        rng.integers(1, 5, n),
    )


def test_every_look_is_in_one_band_and_worse_bands_are_farther_off() -> None:
    looks = made()
    bands = error_bands(looks)
    assert tuple(band.name for band in bands) == BANDS
    assert sum(band.n for band in bands) == len(looks.error_m)
    assert bands[-1].n == 12
    low, high = bands[1].cep50_m, bands[3].cep50_m
    assert low is not None and high is not None and low.value < high.value
    assert high.low < high.value < high.high and high.cluster == "layout" and high.n == bands[3].n


def test_bands_meet_at_their_edges_and_empty_ones_are_none() -> None:
    gdop = np.array([1.19, 1.2, 1.99, 2.0, 4.0, math.inf])
    n = len(gdop)
    none = np.full(n, math.nan)
    looks = Looks(tuple(range(n)), np.zeros(n), np.arange(n, dtype=float), none, gdop, none, np.ones(n, np.int64))
    assert [band.n for band in error_bands(looks)] == [1, 2, 1, 2, 0]
    assert error_bands(looks)[-1][2:] == (None, None)


def test_what_makes_the_error_correlates_with_it_and_the_rest_does_not() -> None:
    found = {(c.dilution, c.time_s): c for c in correlations(made(200))}
    assert len(found) == 9
    for time_s in (None, *TIMES):
        path, now, information = (
            found[name, time_s].rho for name in ("path_gdop", "constellation_gdop", "information_dop_m")
        )
        assert path is not None and now is not None and information is not None
        assert abs(path.value) < 0.2 and path.low < 0.0 < path.high
        assert 0.3 < now.value < information.value and information.low > 0.4
    assert found["constellation_gdop", None].n == 360 and found["constellation_gdop", 30.0].n == 160
    assert found["information_dop_m", None].n == 400


def test_a_dilution_that_no_bag_told_has_no_correlation() -> None:
    looks = made()
    blank = Looks(
        looks.layouts, looks.time_s, looks.error_m, looks.path_gdop, np.full(120, math.nan), looks.error_m, looks.views
    )
    found = {c.dilution: c for c in correlations(blank) if c.time_s is None}
    assert (found["constellation_gdop"].n, found["constellation_gdop"].rho) == (0, None)
    certain = found["information_dop_m"].rho
    assert certain is not None and certain.value == 1.0


def test_errors_by_views_stand_beside_the_root() -> None:
    """Errors fall as 1 / sqrt(N) by making, so the expected and the found meet."""
    layouts, numbers = 200, np.array([1, 2, 3, 4])
    rng = np.random.default_rng(3)
    views = np.tile(np.repeat(numbers, 2), layouts)
    n = len(views)
    looks = Looks(
        tuple((np.arange(n) // 8).tolist()),
        np.tile(TIMES, n // 2),
        rng.rayleigh(10.0, n) / np.sqrt(views),
        *np.full((3, n), math.nan),
        views,
    )
    found = errors_by_views(looks)
    assert [(row.time_s, row.views, row.n) for row in found] == [(t, v, layouts) for t in TIMES for v in (1, 2, 3, 4)]
    for row in found:
        if row.views == 1:
            assert row.root_m is None
        else:
            assert row.root_m is not None and row.root_m.value == pytest.approx(row.cep50_m.value, rel=0.2)
            assert row.root_m.low < row.root_m.value < row.root_m.high and row.root_m.cluster == "layout"
            assert row.cep50_m.low < row.cep50_m.value < row.cep95_m.value


def test_more_views_than_four_are_one_row_and_few_looks_start_no_root() -> None:
    """Two views were had by 23 looks at 30 s, one too few; three by 24, so the root goes on from them."""
    views = np.repeat([1, 2, 3, 4, 7, 9], [10, 23, 24, 5, 5, 5])
    n = len(views)
    looks = Looks(
        tuple(k % 8 for k in range(n)),
        np.full(n, 30.0),
        np.random.default_rng(2).rayleigh(10.0, n),
        *np.full((3, n), math.nan),
        views,
    )
    found = errors_by_views(looks)
    assert [(row.views, row.n) for row in found] == [(1, 10), (2, 23), (3, 24), (4, 15)]
    assert [row.root_m is None for row in found] == [True, True, False, False]
    assert found[3].root_m is not None
    assert found[3].root_m.value == pytest.approx(found[2].cep50_m.value * math.sqrt(3.0 / 4.0))


def test_victims_not_placed_yet_count_as_infinitely_far_where_all_are_looked_at() -> None:
    n = 40
    error = np.linspace(1.0, 5.0, n)
    error[::8] = math.inf
    views = np.where(np.isfinite(error), 2, 0)
    looks = Looks(tuple(k % 10 for k in range(n)), np.full(n, 30.0), error, *np.full((3, n), math.nan), views)
    (at,) = errors_at(looks)
    assert (at.n, at.reported) == (40, 35) and at.cep95_m is None, "an eighth has no report"
    placed = np.sort(error)
    assert at.cep50_m is not None and at.cep50_m.value == placed[19] and at.cep50_m.n == 40
    (held,) = errors_by_views(looks)
    assert (held.views, held.n) == (2, 35) and sum(band.n for band in error_bands(looks)) == 35
    rare = dataclasses.replace(looks, error_m=np.where(np.arange(n) == 8, math.inf, np.linspace(1.0, 5.0, n)))
    (most,) = errors_at(rare)
    assert most.cep95_m is not None and most.cep95_m.plain["high"] is None
    assert any("without a report" in note or "no upper end" in note for note in most.cep95_m.notes)


def test_nothing_looked_at_is_nothing_told() -> None:
    none = np.empty(0)
    looks = Looks((), none, none, none, none, none, np.empty(0, np.int64))
    assert [band.n for band in error_bands(looks)] == [0] * 5
    assert errors_by_views(looks) == () == errors_at(looks) and all(c.rho is None for c in correlations(looks))


@pytest.mark.parametrize("error", [[-1.0], [math.nan], [1.0, 2.0]], ids=["below 0", "NaN", "one too many"])
def test_what_is_no_look_is_refused(error: list[float]) -> None:
    one = np.ones(1)
    with pytest.raises(InputError, match=r"looks: .*allowed"):
        Looks((0,), one, np.array(error), one, one, one, np.ones(1, np.int64))
