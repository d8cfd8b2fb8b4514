"""The bill of materials is valid CycloneDX and lists what a default install brings in, no more."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "sbom.py"


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    target = tmp_path_factory.mktemp("sbom") / "sbom.cdx.json"
    done = subprocess.run([sys.executable, SCRIPT, target], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(target.read_text())
    return made


def test_has_the_fields_cyclonedx_requires(bill: dict[str, Any]) -> None:
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["specVersion"] == "1.6"
    assert isinstance(bill["version"], int) and bill["version"] >= 1
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", bill["serialNumber"])
    components = [bill["metadata"]["component"], *bill["components"]]
    for part in components:
        assert part["type"] in {"library", "application"}
        assert part["name"] and part["version"]
        assert re.fullmatch(r"pkg:pypi/[a-z0-9-]+@\S+", part["purl"])
        for licence in part.get("licenses", []):
            assert licence.get("expression") or licence["license"]["name"]
    refs = [part["bom-ref"] for part in components]
    assert len(refs) == len(set(refs))
    assert {d["ref"] for d in bill["dependencies"]} == set(refs)
    assert all(set(d["dependsOn"]) <= set(refs) for d in bill["dependencies"])


def test_lists_the_default_install_with_the_versions_seen_and_nothing_of_the_extras(bill: dict[str, Any]) -> None:
    listed = {canonicalize_name(c["name"]): c["version"] for c in bill["components"]}
    wanted = [Requirement(line) for line in requires("sar-eval") or []]
    default = {canonicalize_name(r.name) for r in wanted if r.marker is None}
    assert default and default <= set(listed)
    assert all(listed[name] == version(name) for name in listed)
    assert "llvmlite" in listed, "what numba needs is part of it"
    assert not {"pytest", "matplotlib", "mujoco", "ruff"} & set(listed)


def test_same_environment_same_bill() -> None:
    make = runpy.run_path(str(SCRIPT))["bill"]
    assert make() == make()


def test_wrong_call_is_refused() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "usage" in done.stderr
