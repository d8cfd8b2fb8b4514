"""Workers of a cluster fly only with our code; flying on real ones is in tests/integration."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from sar_core.errors import MissingDependencyError
from sar_eval.campaign import cluster
from sar_eval.campaign.cluster import Cluster, differing, fly_remote
from sar_eval.campaign.plan import CampaignPlan
from sar_eval.campaign.sources import code
from sar_eval.campaign.workers import MissionJob, MissionOutcome


def test_the_same_code_does_not_differ() -> None:
    assert differing(code(), code()) is None


@pytest.mark.parametrize(
    ("key", "mend"),
    [
        ("numpy", "install the same version on every worker"),
        ("openblas", "set OPENBLAS_CORETYPE=Haswell on every worker"),
    ],
)
def test_the_first_difference_is_told_with_what_mends_it(key: str, mend: str) -> None:
    ours = {**code(), key: "Haswell"}
    assert differing({**ours, key: "Zen"}, ours) == f"{key} is Zen, here it is Haswell: {mend}"


def test_with_our_code_a_job_is_flown_and_with_other_code_refused(
    plan: CampaignPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = MissionJob(plan.tasks[0])
    monkeypatch.setattr(cluster, "fly_job", lambda flown: MissionOutcome(flown, message="flown"))
    assert fly_remote(job, code()).message == "flown"
    refused = fly_remote(job, {**code(), "numpy": "0.1"})
    assert refused.fatal and refused.reason == "host_error" and refused.message.startswith("a worker's numpy is ")


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "distributed":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"pip install 'sar-eval\[cluster\]'"):
        Cluster("tcp://127.0.0.1:9")
