"""What a manifest says and refuses: inputs, speed, rules, names of files, and nothing of the machine's own name."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_core.errors import ContractError, InputError
from sar_eval.campaign import manifest as module
from sar_eval.campaign.manifest import (
    MANIFEST,
    RULE,
    Manifest,
    Stage1,
    check_same,
    file_sha256,
    make_manifest,
    read_manifest,
)
from sar_eval.campaign.plan import CampaignChoice, make_plan
from sar_eval.episode import conduct
from sar_eval.scenario.model import Scenario
from sar_swarm.piloting import patternlist

ROOT = Path(__file__).resolve().parents[4]
CHOICE = CampaignChoice(Scenario(drones=2), ("village",), ("spiral",), "present", (1,), (0, 1), episode_set="v2")


def made(**changes: Any) -> Manifest:
    return make_manifest(make_plan(replace(CHOICE, **changes)))


def rewritten(folder: Path, **changes: Any) -> None:
    """Another manifest, with the identity that belongs to it."""
    body = {**json.loads((folder / MANIFEST).read_text()), **changes}
    decides = {key: body[key] for key in ("identity_rule", "configuration", "code", "inputs") if key in body}
    body["identity"] = Manifest(decides, tuple(body["episodes"]), {}).identity
    (folder / MANIFEST).write_text(json.dumps(body))


def test_it_comes_back_and_names_its_rule(tmp_path: Path) -> None:
    manifest = made()
    manifest.write(tmp_path)
    assert read_manifest(tmp_path) == manifest
    assert json.loads((tmp_path / MANIFEST).read_text())["identity_rule"] == RULE == manifest.rule


def test_the_name_of_the_machine_stays_at_home(tmp_path: Path) -> None:
    made().write(tmp_path)
    assert f'"{socket.gethostname()}"' not in (tmp_path / MANIFEST).read_text()
    body = json.loads((tmp_path / MANIFEST).read_text())
    rewritten(tmp_path, host={**body["host"], "hostname": "an-old-manifest-had-it"})
    found = read_manifest(tmp_path)
    assert found is not None and "hostname" not in found.host


def test_the_packages_version_is_no_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    before = made()
    monkeypatch.setattr(module, "__version__", "9.9.9")
    after = made()
    assert after.host["sar_eval"] == "9.9.9" and after.identity == before.identity


def test_the_pace_of_real_autopilots_is_and_that_of_the_simulator_is_not() -> None:
    piloted = [made(tier="sitl", speed=speed, scenario=Scenario(drones=2)) for speed in (1.0, 2.0)]
    with pytest.raises(InputError, match=r"configuration\.sim_speed is 1\.0 there, 2\.0 now"):
        check_same(*piloted, Path("c"))
    assert made(speed=2.0).identity == made().identity


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"openblas": "Prescott"}, "OPENBLAS_CORETYPE=Prescott"),
        ({"sar_eval": {}}, r"code\.sar_eval\.backends/backend\.py"),
    ],
)
def test_other_code_is_named(changed: dict[str, Any], named: str) -> None:
    manifest = made()
    other = replace(manifest, decides={**manifest.decides, "code": {**manifest.decides["code"], **changed}})
    with pytest.raises(InputError, match=named):
        check_same(other, manifest, Path("c"))


def test_the_file_of_a_pattern_of_ones_own_is_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patternlist, "_PATTERNS", dict(patternlist._PATTERNS))
    patternlist.register(patternlist.Pattern("own", "here", route=lambda *_: np.zeros((1, 2))))
    (inputs,) = made(patterns=("own",)).decides["inputs"]["conditions"].values()
    (shipped,) = made().decides["inputs"]["conditions"].values()
    assert inputs["pattern_sha256"] == hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    assert "pattern_sha256" not in shipped, "its code is hashed with the packages"


def test_gazebos_models_are_an_input() -> None:
    (inputs,) = made(tier="gazebo").decides["inputs"]["conditions"].values()
    (without,) = made().decides["inputs"]["conditions"].values()
    assert len(inputs["models_sha256"]) == 64 and "models_sha256" not in without


def test_constants_edited_under_a_running_process_make_another_campaign(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "configs" / "indices", tmp_path / "indices")
    monkeypatch.setattr(conduct, "share_dir", lambda name: tmp_path)
    before, constants = made(), tmp_path / "indices" / "safety.yaml"
    constants.write_text(constants.read_text().replace("tracking_mps: 2.0", "tracking_mps: 2.50"))
    assert conduct.indices().safety.tracking_mps == 2.5
    with pytest.raises(InputError, match=r"inputs\.conditions\.village-spiral\.safety_sha256 is "):
        check_same(before, made(), Path("c"))


def test_a_stage_1_file_brings_the_code_that_makes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, origin = make_plan(CHOICE), Stage1("/far/away/stage1.jsonl", "0" * 64, "given")
    before = make_manifest(plan, origin)
    assert before.host["stage1_file"] == "stage1.jsonl"
    monkeypatch.setattr(module, "stage1_sources", lambda: {"stage1.py": "edited"})
    with pytest.raises(InputError, match=r"inputs\.stage1\.code"):
        check_same(before, make_manifest(plan, origin), Path("c"))


def test_a_manifest_of_the_first_rule_is_read_and_says_so() -> None:
    found = read_manifest(ROOT / "results")
    assert found is not None and found.rule == 1
    with pytest.raises(InputError, match=f"hashed by rule 1, this version hashes by rule {RULE}"):
        check_same(found, made(), Path("c"))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"identity_rule": RULE + 1}, f"identity_rule is {RULE + 1}; this version knows 1 to {RULE}"),
        ({"identity_rule": "two"}, "identity_rule is two"),
        ({"episodes": ["../x"]}, r"name '\.\./x'"),
        ({"episodes": [7]}, "name '7'"),
        ({"files": {"../x": "0"}}, r"name '\.\.'"),
        ({"files": ["x"]}, "lacks"),
        ({"code": [1]}, "lacks"),
    ],
)
def test_a_manifest_with_something_odd_in_it_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    made().write(tmp_path)
    rewritten(tmp_path, **changes)
    with pytest.raises(ContractError, match=told):
        read_manifest(tmp_path)


def test_a_file_beside_it_that_is_another_one_is_refused(tmp_path: Path) -> None:
    beside = tmp_path / "figures" / "map.svg"
    beside.parent.mkdir()
    beside.write_text("<svg/>")
    replace(made(), files={"figures/map.svg": file_sha256(beside), "gone.md": "0"}).write(tmp_path)
    assert read_manifest(tmp_path) is not None
    beside.write_text("<SVG/>")
    with pytest.raises(ContractError, match=r"map\.svg: is not the file"):
        read_manifest(tmp_path)
