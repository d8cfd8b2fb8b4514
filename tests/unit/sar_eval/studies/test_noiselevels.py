"""Where the levels of version 2 lie against the gates, measured with the gates themselves."""

from __future__ import annotations

import pytest
from scipy.special import iv

from sar_core.errors import InputError
from sar_eval.scenario.episodeset import LEVELS
from sar_eval.studies.noiselevels import LevelPlace, phasor_length, place_levels


@pytest.fixture(scope="module")
def places() -> list[LevelPlace]:
    return place_levels(LEVELS, 120.0)


def test_r_is_what_von_mises_noise_leads_to_expect(places: list[LevelPlace]) -> None:
    """In a window of 50 frames E[R^2] = A^2 + (1 - A^2)/50; the tracker takes a little out."""
    assert [place.kappa for place in places] == [1e4, 8.0, 4.0, 2.0, 1.0]
    for place in places[1:]:
        a = float(iv(1, place.kappa) / iv(0, place.kappa))
        assert place.theory_r == pytest.approx(a) == phasor_length(place.kappa)
        assert a - 0.01 < place.mean_r < (a * a + (1.0 - a * a) / 50.0) ** 0.5 + 0.01
    assert 0.9995 < places[0].mean_r <= 1.0


def test_levels_are_clean_twice_inside_the_envelope_at_its_edge_and_beyond(places: list[LevelPlace]) -> None:
    clean, near, inside, edge, beyond = places
    assert [place.open_share for place in (clean, near, inside)] == [1.0, 1.0, 1.0]
    assert 0.4 < edge.open_share < 0.9
    assert beyond.open_share < 0.02


def test_shares_of_amplitude_states_are_whole_and_fall_with_sigma(places: list[LevelPlace]) -> None:
    for place in places:
        assert place.accept + place.predict_only + place.reject + place.recalibrate == pytest.approx(1.0)
    clean, near, inside, edge, beyond = places
    assert clean.accept == near.accept == 1.0
    assert 0.35 < inside.accept < 0.7 and inside.recalibrate == 0.0
    assert max(edge.accept, beyond.accept) < 0.15
    assert min(edge.recalibrate, beyond.recalibrate) > 0.05


def test_too_short_a_look_is_refused() -> None:
    with pytest.raises(InputError, match="duration_s = 5: allowed: 10 or more"):
        place_levels(LEVELS[:1], 5.0)
