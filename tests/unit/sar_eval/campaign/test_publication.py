"""What may be published: bound to the commit that flew, told by its command, and nothing that names a place."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sar_analysis.bags.textfiles import write_compressed
from sar_core.errors import ContractError, InputError
from sar_eval.campaign.evaluation import FULL, REDUCED, STAGE1_SEEDS
from sar_eval.campaign.manifest import RULE, Manifest
from sar_eval.campaign.publication import check_placeless, checked_commit, command_of, sources_by_rule_1
from sar_eval.campaign.sources import code
from tests.unit.sar_eval.campaign.checkout import PACKAGES, committed_sources, git


def manifest_with(code: dict[str, Any], **decides: Any) -> Manifest:
    return Manifest({"code": code, **decides}, (), {})


def flown_now() -> Manifest:
    return manifest_with(code(), identity_rule=RULE)


def test_a_commit_is_known_by_the_sources_that_fly(tmp_path: Path) -> None:
    checkout, flown = committed_sources(tmp_path), flown_now()
    flew = git(checkout, "rev-parse", "HEAD")
    assert checked_commit(checkout, "HEAD", flown) == flew and re.fullmatch("[0-9a-f]{40}", flew)
    changes = (
        *((f"{PACKAGES[3]}/cli/app.py", None), (f"{PACKAGES[2]}/sensing/gate.py", "sar_swarm/sensing/gate.py")),
        *((f"{PACKAGES[3]}/px4/world.py", "sar_eval/px4/world.py"), (f"{PACKAGES[4]}/world.py", "sar_gazebo/world.py")),
    )
    for place, told in changes:
        file = tmp_path / place
        file.write_text(file.read_text() + "\n")
        git(checkout, "commit", "--quiet", "--all", "--message", "changed")
        if told is None:
            assert checked_commit(checkout, "HEAD", flown) == git(checkout, "rev-parse", "HEAD") != flew
            continue
        with pytest.raises(ContractError, match=rf"commit HEAD: its .*{told}.* is not the code that flew"):
            checked_commit(checkout, "HEAD", flown)
    assert checked_commit(checkout, flew[:12], flown) == flew


def test_a_manifest_without_a_rule_is_checked_by_the_first_one(tmp_path: Path) -> None:
    """Sources of then lay in one folder; what ``episode`` did not import was not seen, sub-packages neither."""
    checkout = committed_sources(tmp_path)
    then = {"episode.py": "from sar_eval.config import X\n", "config.py": "X = 1\n", "cli.py": ""}
    for name, text in then.items():
        (tmp_path / PACKAGES[3] / name).write_text(text)
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "then")
    flown = manifest_with(sources_by_rule_1({Path(place).name: tmp_path / place for place in PACKAGES}))
    assert checked_commit(checkout, "HEAD", flown) == git(checkout, "rev-parse", "HEAD")
    for place, told in ((f"{PACKAGES[3]}/px4/world.py", None), (f"{PACKAGES[3]}/config.py", "sar_eval")):
        file = tmp_path / place
        file.write_text(file.read_text() + "\n")
        git(checkout, "commit", "--quiet", "--all", "--message", "changed")
        if told is None:
            checked_commit(checkout, "HEAD", flown)
            continue
        with pytest.raises(ContractError, match=f"commit HEAD: its {told} is not the code that flew"):
            checked_commit(checkout, "HEAD", flown)


@pytest.mark.parametrize("commit", ["nobody", "0123456789ab", "--all"])
def test_a_commit_nobody_knows_is_refused(tmp_path: Path, commit: str) -> None:
    git(tmp_path, "init", "--quiet")
    with pytest.raises(InputError, match=f"commit {commit}: git does not find it"):
        checked_commit(tmp_path, commit, flown_now())


@pytest.mark.parametrize(
    ("extent", "seeds", "told"),
    [
        (FULL, STAGE1_SEEDS, "sar-eval eval --full"),
        (FULL, (2, 3, 4), "sar-eval eval --full --seeds 2,3,4"),
        (
            REDUCED,
            STAGE1_SEEDS,
            "sar-eval eval --episodes 0,6,12,18,24 --pattern partitioned_lawnmower --pattern pheromone",
        ),
    ],
)
def test_the_command_says_what_is_not_the_default(extent: Any, seeds: tuple[int, ...], told: str) -> None:
    choice = SimpleNamespace(episodes=extent.episodes, patterns=extent.patterns)
    evaluation: Any = SimpleNamespace(plan=SimpleNamespace(choice=choice))
    assert command_of(evaluation, [SimpleNamespace(seed=seed) for seed in (*seeds, *seeds)]) == told


def test_a_text_that_names_a_place_is_refused_even_compressed(tmp_path: Path) -> None:
    (tmp_path / "RESULTS.md").write_text("flown in runs/full")
    write_compressed(tmp_path / "episodes.jsonl.zst", '{"bag": "/srv/me/runs/full/bags"}\n')
    check_placeless(tmp_path, (Path("/srv/you"), Path("/")))
    with pytest.raises(ContractError, match=r"episodes\.jsonl\.zst: names /srv/me,"):
        check_placeless(tmp_path, (Path("/srv/you"), Path("/srv/me")))
