"""The small plan of the desk, and its manifest."""

from __future__ import annotations

import pytest

from sar_eval.campaign.manifest import Manifest, make_manifest
from sar_eval.campaign.plan import CampaignPlan, make_plan
from tests.unit.sar_eval.campaign.desk import CHOICE


@pytest.fixture(scope="session")
def plan() -> CampaignPlan:
    return make_plan(CHOICE)


@pytest.fixture(scope="session")
def manifest(plan: CampaignPlan) -> Manifest:
    return make_manifest(plan)
