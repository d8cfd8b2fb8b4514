"""The constants are read whole, named by their hash, and refused in words where they cannot be."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from sar_core.errors import InputError, MissingDataError
from sar_core.indices import load_indices

COMMITTED = Path(__file__).resolve().parents[3] / "configs" / "indices"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(COMMITTED, tmp_path / "indices"))


def test_the_committed_constants_and_their_hashes() -> None:
    found = load_indices(COMMITTED)
    assert set(found.sha256) == {file.name for file in COMMITTED.glob("*.yaml")}
    for name, digest in found.sha256.items():
        assert digest == hashlib.sha256((COMMITTED / name).read_bytes()).hexdigest()
    assert found.rules.valid_direction_deg == 20.0 and found.rules.weights is None
    assert found.quality.weights["camera_ready"].near == 0.308
    assert all(weights.false_alarms == 0.0 for weights in found.quality.weights.values())


def test_every_constant_has_a_reason_beside_it() -> None:
    """A comment stands above every key of the top level but a file's name and version."""
    for file in COMMITTED.glob("*.yaml"):
        lines = file.read_text(encoding="utf-8").splitlines()
        for k, line in enumerate(lines):
            if line[:1].isalpha() and line.split(":")[0] not in ("name", "version"):
                assert lines[k - 1].startswith("#"), f"{file.name}: {line}"


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("flight_rules.yaml", "lane_safe_m: 2.0", "lane_safe_m: 20.0", "must be less than lane_max_m"),
        ("flight_rules.yaml", "stop_mps: 0.1", "stop_speed: 0.1", "unknown key 'stop_speed'"),
        ("flight_rules.yaml", "weights: null", "weights: {nu: 1, gamma: 2, delta: 1, alpha: 1, beta: 1}", "nu > gamma"),
        ("quality.yaml", "tilt_deg: 35.0", "tilt_deg: -1", "tilt_deg = -1"),
        ("quality.yaml", "  default:", "  mine:", "a preset named default"),
        ("quality.yaml", "high_quantile: 0.95", "high_quantile: 0.4", "low_quantile must be less"),
        ("safety.yaml", "name: safety", "name: quality", "name = 'quality'"),
        ("safety.yaml", "version: 1", "version: [", "cannot read the constants"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, file: str, old: str, new: str, words: str) -> None:
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=words):
        load_indices(folder)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "safety.yaml").unlink()
    with pytest.raises(MissingDataError, match=r"safety\.yaml: no such file"):
        load_indices(folder)
