"""The smallest detectable difference: as often found as promised, smaller with more layouts, refused in words."""

from __future__ import annotations

import math

import pytest

from sar_analysis.stats import rates
from sar_analysis.stats.detectable import Design, Detectable, detectable, sharper, simulated_power
from sar_core.errors import InputError


def above(found: Detectable) -> float:
    assert found.above is not None
    return found.above


@pytest.mark.parametrize(
    "campaign",
    [
        Design(50, 3, 0.25),
        Design(50, 3, 0.60, correlation=0.0),
        Design(30, 3, 0.60, paired=False),
        Design(200, 1, 0.02),
        Design(50, 3, 2.0, kind="rate", exposure=0.27),
        Design(50, 3, 2.0, kind="rate", exposure=0.27, paired=False),
    ],
)
def test_drawn_campaigns_find_it_as_often_as_promised(campaign: Design) -> None:
    found = detectable(campaign)
    assert simulated_power(campaign, above(found)) == pytest.approx(0.8, abs=0.045)
    assert simulated_power(campaign, campaign.base) < 0.065, "what is not there is found too often"


def test_without_correlation_it_is_the_t_test_of_the_textbook() -> None:
    """Independent missions, two groups of 64, half a standard deviation: power 0.80 (Cohen 1988, table 2.3.5)."""
    campaign = Design(64, 1, 100.0, correlation=0.0, kind="rate", exposure=1.0, paired=False)
    assert above(detectable(campaign)) == pytest.approx(105.0, abs=0.15)
    paired = Design(34, 1, 1e6, correlation=0.0, kind="rate", common=0.0)
    gap = rates.detectable_difference(math.sqrt(2e6), 34)
    assert above(detectable(paired)) - 1e6 == pytest.approx(gap, rel=2e-3)


def test_layouts_buy_more_than_seeds_and_pairing_more_than_none() -> None:
    campaign = Design(50, 3, 0.25)
    layouts, seeds = (above(detectable(other)) for other in sharper(campaign).values())
    assert layouts < seeds < above(detectable(campaign))
    assert above(detectable(campaign)) < above(detectable(Design(50, 3, 0.25, paired=False)))


def test_a_rare_share_has_nothing_to_find_below() -> None:
    assert detectable(Design(10, 3, 0.02)).below is None


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"layouts": 1}, "1 layouts; allowed: at least 2"),
        ({"seeds": 0}, "0 seeds"),
        ({"base": 1.0}, "base 1; allowed: above 0 and below 1"),
        ({"correlation": 1.0}, "correlation 1"),
        ({"common": 1.1}, "common 1.1"),
        ({"exposure": 0.0}, "exposure 0"),
    ],
)
def test_nonsense_is_refused(values: dict[str, float], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Design(**({"layouts": 10, "seeds": 3, "base": 0.2} | values))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"power 0\.01"):
        detectable(Design(10, 3, 0.2), power=0.01)
    with pytest.raises(InputError, match="alpha 0"):
        detectable(Design(10, 3, 0.2), alpha=0.0)
