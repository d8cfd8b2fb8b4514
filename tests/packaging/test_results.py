"""The committed campaign is whole, its pages are what the code makes of it, its figures count up from its records."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sar_analysis.stage1.rows import read_stage1
from sar_eval.campaign.evaluation import STAGE1_SEEDS
from sar_eval.campaign.publication import ROWS, checked_commit
from tests.packaging.published import CHECKS, manifest_of

ROOT = Path(__file__).resolve().parents[2]
QUOTED = re.compile(r"\d[\d.,]*(?: %| m| s)? \[[-\d., ]+\]")
"""A figure with its interval, as pages print it."""


@pytest.fixture
def published() -> Path:
    folder = ROOT / "results"
    assert folder.is_dir(), "results/ is not there: sar-eval publish makes it of a finished evaluation"
    return folder


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_committed_campaign_passes(check: Callable[[Path], None], published: Path) -> None:
    check(published)


def test_its_commit_has_the_code_that_flew_it(published: Path) -> None:
    """By the rule that its manifest was hashed by, whatever the rule is today."""
    manifest = manifest_of(published)
    known = subprocess.run(["git", "-C", str(ROOT), "cat-file", "-e", manifest.host["commit"]], capture_output=True)
    if known.returncode != 0:
        pytest.skip(f"commit {manifest.host['commit'][:12]} is not in this checkout: git fetch --unshallow gets it")
    assert checked_commit(ROOT, manifest.host["commit"], manifest) == manifest.host["commit"]


def test_it_is_the_default_campaign() -> None:
    manifest = manifest_of(ROOT / "results")
    assert manifest.host["command"] == "sar-eval eval --full"
    assert len(manifest.episodes) == 2_400
    assert re.fullmatch(r"[0-9a-f]{40}", manifest.host["commit"])
    assert set(STAGE1_SEEDS) == {row.seed for row in read_stage1(ROOT / "results" / ROWS)}


@pytest.mark.parametrize("page", ["README.md", "docs/campaigns.md"])
def test_figures_quoted_from_it_are_its_own(page: str) -> None:
    """In sections that link to its page, every figure with an interval stands in RESULTS.md or TABLES.md."""
    sections = re.split(r"^## ", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    quoted = [figure for part in sections if "results/RESULTS.md" in part for figure in QUOTED.findall(part)]
    texts = ((ROOT / "results" / name).read_text(encoding="utf-8") for name in ("RESULTS.md", "TABLES.md"))
    pages = " ".join(" ".join(texts).split())
    assert quoted and not [figure for figure in quoted if figure not in pages]
