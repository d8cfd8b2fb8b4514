"""Which folder an evaluation gets, and which of its missions people watch; the job itself is in tests/integration."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_eval.campaign.campaign import open_campaign
from sar_eval.campaign.evaluation import CAMPAIGN, FULL, REDUCED, STAGE1, Evaluation, Extent, begun_in, follow, place_of
from sar_eval.campaign.manifest import Manifest
from sar_eval.campaign.plan import CampaignPlan
from sar_swarm.piloting.patternlist import STANDARD

SMALL = Extent((0, 1), ("spiral",))


@pytest.fixture(scope="module")
def stage1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stage1") / STAGE1
    line = '{{"policy": "spiral", "seed": {0}, "episode": {1}, "return": {0}.{1}}}'
    path.write_text("\n".join(line.format(seed, episode) for seed in range(5) for episode in range(3)))
    return path


@pytest.fixture
def evaluation(plan: CampaignPlan, manifest: Manifest) -> Evaluation:
    return Evaluation(plan, manifest)


def test_one_mission_of_each_pattern_is_shown_and_it_has_its_victims(evaluation: Evaluation) -> None:
    shown = evaluation.replayed
    assert [task.scenario.pattern for task in shown] == ["boustrophedon", "spiral"]
    assert {(task.seed, task.index, task.scenario.victim_absent) for task in shown} == {(4, 0, False)}


def test_the_whole_set_and_five_of_its_layouts_each_at_another_level() -> None:
    assert (FULL.patterns, len(FULL.episodes)) == (STANDARD, 50)
    assert [(k // 5, k % 5) for k in REDUCED.episodes] == [(k, k) for k in range(5)]
    assert set(REDUCED.patterns) < set(FULL.patterns)


def test_a_campaign_follows_from_the_files_median_seeds(stage1: Path) -> None:
    made = follow(stage1, SMALL)
    seeds = {task.seed for task in made.plan.tasks}
    assert len(made.plan) == len(seeds) * len(SMALL.episodes) * len(SMALL.patterns) * 2 and 2 in seeds
    assert {task.scenario.episode_set for task in made.plan.tasks} == {"village-v2"}
    assert str(stage1.parent) not in str(made.manifest), "the same campaign wherever its folder lies"


def test_a_folder_is_taken_up_where_it_holds_this_campaign_and_passed_over_where_it_does_not(
    stage1: Path, evaluation: Evaluation, tmp_path: Path
) -> None:
    base = tmp_path / "eval"
    assert place_of(evaluation, base) == base
    with open_campaign(base / CAMPAIGN, evaluation.manifest):
        pass
    assert place_of(evaluation, base) == base
    other = follow(stage1, SMALL)
    assert place_of(other, base) == tmp_path / "eval-2"


def test_what_was_begun_is_found_by_its_seeds(stage1: Path, tmp_path: Path) -> None:
    base = tmp_path / "eval"
    assert begun_in(base, SMALL, (0, 1, 2, 3, 4)) is None
    made = follow(stage1, SMALL)
    with open_campaign(base / CAMPAIGN, made.manifest):
        (base / STAGE1).write_bytes(stage1.read_bytes())
    found = begun_in(base, SMALL, (0, 1, 2, 3, 4))
    assert found is not None and found[0] == base and found[1].plan.keys == made.plan.keys
    assert begun_in(base, SMALL, (0, 1, 2)) is None
    assert begun_in(base, Extent((0,), ("levy_flight",)), (0, 1, 2, 3, 4)) is None
