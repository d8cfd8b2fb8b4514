"""The workflows for GitHub, as far as they can be checked without it: schema, audit, our own rules, what they name."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").iterdir())
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
"""An action by its commit, the version said beside it."""
GOOD = """\
name: good
on: [push]
permissions: {}
concurrency:
  group: good-${{ github.ref }}
  cancel-in-progress: true
jobs:
  build:
    name: build
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions:
      contents: read # to check the sources out
    steps:
      - uses: actions/checkout@0123456789abcdef0123456789abcdef01234567 # v1.2.3
        with:
          persist-credentials: false
      - run: make
"""


def faults(text: str) -> list[str]:
    """What a workflow does against our rules, one line each."""
    workflow: dict[str, Any] = yaml.safe_load(text)
    jobs: dict[str, dict[str, Any]] = workflow["jobs"]
    found = [f"not pinned: {line.strip()}" for line in text.splitlines() if "uses:" in line and not PINNED.search(line)]
    if workflow.get("permissions") not in ({}, {"contents": "read"}):
        found.append("permissions of the workflow: not {} or contents: read")
    if not {"group", "cancel-in-progress"} <= set(workflow.get("concurrency", {})):
        found.append("concurrency: no group, or not said whether it cancels")
    for name, job in jobs.items():
        if not isinstance(job.get("timeout-minutes"), int):
            found.append(f"{name}: no timeout-minutes")
        if not set(job.get("permissions", {}).items()) <= {("contents", "read")}:
            found.append(f"{name}: permissions beyond contents: read")
        if str(job["runs-on"]).endswith("latest"):
            found.append(f"{name}: runs on whatever is newest")
        for step in job["steps"]:
            kept = step.get("with", {}).get("persist-credentials", True)
            if step.get("uses", "").startswith("actions/checkout@") and kept is not False:
                found.append(f"{name}: the checkout keeps its credentials")
    return found


def schema_check(schema: str, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def audit(place: Path) -> subprocess.CompletedProcess[str]:
    zizmor = Path(sysconfig.get_path("scripts")) / "zizmor"
    command = [str(zizmor), "--offline", "--pedantic", "--strict-collection", "--no-progress", str(place)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def put(folder: Path, text: str) -> Path:
    file = folder / ".github" / "workflows" / "broken.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def commands(workflow: Path) -> str:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job["steps"])


def test_the_ones_there_are() -> None:
    assert [file.name for file in WORKFLOWS] == ["compose.yml", "images.yml", "nightly.yml", "ros.yml", "test.yml"]


def test_the_published_schemas_accept_them(tmp_path: Path) -> None:
    done = schema_check("vendor.github-workflows", *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr
    done = schema_check("vendor.dependabot", GITHUB / "dependabot.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert schema_check("vendor.github-workflows", put(tmp_path, GOOD)).returncode == 0
    broken = GOOD.replace("timeout-minutes", "time-out-minutes")
    done = schema_check("vendor.github-workflows", put(tmp_path / "broken", broken))
    assert done.returncode == 1 and "time-out-minutes" in done.stdout


def test_the_audit_finds_nothing() -> None:
    done = audit(GITHUB)
    assert done.returncode == 0, done.stdout + done.stderr
    for file in (*WORKFLOWS, GITHUB / "dependabot.yml"):
        assert f"completed {file}" in done.stderr, "what is not read has no findings"


@pytest.mark.parametrize(
    ("right", "wrong", "finding"),
    [
        ("@0123456789abcdef0123456789abcdef01234567 # v1.2.3", "@v1", "unpinned-uses"),
        ("persist-credentials: false", "fetch-depth: 1", "artipacked"),
        ("run: make", "run: echo ${{ github.event.head_commit.message }}", "template-injection"),
        ("permissions: {}", "permissions: write-all", "excessive-permissions"),
    ],
)
def test_the_audit_finds_what_is_wrong(tmp_path: Path, right: str, wrong: str, finding: str) -> None:
    assert audit(put(tmp_path / "good", GOOD)).returncode == 0
    done = audit(put(tmp_path, GOOD.replace(right, wrong)))
    assert done.returncode != 0 and f"[{finding}]" in done.stdout


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_our_own_rules(workflow: Path) -> None:
    assert faults(workflow.read_text()) == []


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("@0123456789abcdef0123456789abcdef01234567 # v1.2.3", "@v1", "not pinned"),
        ("01234567 # v1.2.3", "01234567", "not pinned"),
        ("01234567 # v1.2.3", "0123456 # v1.2.3", "not pinned"),
        ("permissions: {}\n", "", "permissions of the workflow"),
        ("permissions: {}", "permissions: write-all", "permissions of the workflow"),
        ("contents: read #", "contents: write #", "build: permissions beyond"),
        ("    timeout-minutes: 5\n", "", "build: no timeout-minutes"),
        ("  cancel-in-progress: true\n", "", "concurrency"),
        ("persist-credentials: false", "fetch-depth: 1", "build: the checkout keeps its credentials"),
        ("ubuntu-24.04", "ubuntu-latest", "build: runs on whatever is newest"),
    ],
)
def test_a_broken_rule_is_named(right: str, wrong: str, fault: str) -> None:
    assert faults(GOOD) == []
    assert right in GOOD
    (found,) = faults(GOOD.replace(right, wrong, 1))
    assert found.startswith(fault)


def test_an_action_has_one_commit_everywhere() -> None:
    used = {tuple(use.split("@")) for file in WORKFLOWS for use in re.findall(r"uses: (\S+)", file.read_text())}
    assert len({action for action, _ in used}) == len(used)


def test_every_profile_is_read_and_no_other() -> None:
    asked = yaml.safe_load((GITHUB / "workflows" / "compose.yml").read_text())["env"]["PROFILES"].split()
    there = {profile for service in COMPOSE["services"].values() for profile in service["profiles"]}
    assert set(asked) == there and len(asked) == len(there)


@pytest.mark.parametrize(
    ("name", "flown"), [("compose", {"embedded", "sih"}), ("nightly", {"gazebo", "sih"})], ids=["compose", "nightly"]
)
def test_what_is_flown_is_a_service_of_its_profile(name: str, flown: set[str]) -> None:
    workflow = GITHUB / "workflows" / f"{name}.yml"
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    chosen = [row["service"] for job in jobs for row in job.get("strategy", {}).get("matrix", {}).get("include", [])]
    pairs = re.findall(r"--profile (\S+) run --rm -T (\S+)", commands(workflow))
    runs = [
        pair for word in chosen or [""] for pair in (tuple(w.replace('"$SERVICE"', word) for w in p) for p in pairs)
    ]
    assert {service for _, service in runs} == flown
    assert all(profile in COMPOSE["services"][service]["profiles"] for profile, service in runs)


def test_the_targets_of_make_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {target for file in WORKFLOWS for target in re.findall(r"\bmake (\w+) PYTHON", commands(file))}
    assert targets == {"test", "floors"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_version_of_a_tag_is_found() -> None:
    from sar_eval import __version__

    (script,) = re.findall(r"version=\$\((sed .*)\)", commands(GITHUB / "workflows" / "images.yml"))
    done = subprocess.run(["/bin/sh", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == __version__


def test_contributors_are_told_of_each() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Workflows\n")[2].partition("\n## ")[0]
    assert all(f"`{file.name}`" in section for file in WORKFLOWS)


def test_ros_gets_by_pip_what_users_are_told() -> None:
    def installed(text: str) -> list[list[str]]:
        calls = re.findall(r"pip install (.*)", text.replace("\\\n", " ").replace("../", ""))
        return [call.split() for call in calls if "numba" in call]

    told = installed((ROOT / "docs" / "ros.md").read_text())
    assert len(told) == 1 and installed(commands(GITHUB / "workflows" / "ros.yml")) == told
