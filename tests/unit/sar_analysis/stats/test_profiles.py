"""A profile's band is the bootstrap of each of its fractions."""

from __future__ import annotations

import numpy as np
import pytest

from sar_analysis.stats.profiles import profile_band
from sar_analysis.stats.resampling import bootstrap
from sar_analysis.stats.scores import of_matrix
from sar_analysis.stats.statistics import mean_of
from sar_core.errors import InputError

TAUS = np.linspace(0.0, 10.0, 11)


def errors(seeds: int = 8, episodes: int = 12) -> np.ndarray:
    """Errors in m with a seed effect; one mission in twelve finds nobody."""
    rng = np.random.default_rng(2)
    found = rng.exponential(3.0, (seeds, episodes)) * rng.uniform(0.5, 2.0, (seeds, 1))
    found[:, 5] = np.inf
    return found


def test_fractions_rise_and_the_undetected_are_never_below() -> None:
    profile = profile_band(of_matrix("error_m", errors()), TAUS, resamples=500)
    assert (np.diff(profile.fraction) >= 0.0).all() and profile.fraction[0] == 0.0
    assert profile.fraction[-1] <= 11 / 12
    assert ((profile.low <= profile.fraction) & (profile.fraction <= profile.high)).all()
    assert profile.method == "seeds bootstrap, percentile, pointwise" and profile.notes == ()


@pytest.mark.parametrize("design", ["seeds", "seeds_layouts", "stratified"])
def test_each_tau_has_the_interval_of_its_own_fraction(design: str) -> None:
    values = errors()
    profile = profile_band(of_matrix("error_m", values), TAUS, design, resamples=20_000)  # type: ignore[arg-type]
    for k in (1, 3, 6):
        alone = bootstrap(of_matrix("below", (values < TAUS[k]).astype(float)), mean_of, design, resamples=20_000)  # type: ignore[arg-type]
        assert profile.fraction[k] == pytest.approx(alone.value, abs=1e-12)
        assert (profile.low[k], profile.high[k]) == pytest.approx((alone.low, alone.high), abs=1.5 / values.size)


def test_one_seed_unordered_taus_and_few_resamples_are_refused() -> None:
    with pytest.raises(InputError, match="1 seed cannot carry"):
        profile_band(of_matrix("error_m", np.ones((1, 4))), TAUS)
    with pytest.raises(InputError, match="error_m: taus do not increase"):
        profile_band(of_matrix("error_m", errors()), [1.0, 1.0])
    with pytest.raises(InputError, match="50 resamples; allowed: at least 100"):
        profile_band(of_matrix("error_m", errors()), TAUS, resamples=50)
