"""Shared files by name or by path; what every way of installing makes of them is tested in tests/packaging."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_core.errors import InputError, MissingDataError
from sar_eval.scenario import resources

ROOT = Path(__file__).resolve().parents[4]


def test_unknown_folder_names_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'maps'.*worlds, px4_params, configs, launch, sar_msgs, models"):
        resources.share_dir("maps")


def test_missing_folder_is_missing_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(resources.CHECKOUT_PLACES, "worlds", "no-such-folder")
    with pytest.raises(MissingDataError, match=r"'worlds' not found; looked at .*no-such-folder"):
        resources.share_dir("worlds")


@pytest.mark.parametrize(
    ("find", "folder", "suffix"),
    [(resources.world_path, "worlds", ".sdf"), (resources.params_path, "px4_params", ".params")],
)
def test_file_by_name_or_path(
    find: object, folder: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(find)
    name, *_ = resources.names(folder, suffix)
    shared = ROOT / folder / f"{name}{suffix}"
    assert find(name) == shared
    assert find(f"{name}{suffix}") == shared
    assert find(shared) == shared

    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    assert find(name) == shared, "a file of that name without the suffix is something else"
    own = tmp_path / f"{name}{suffix}"
    own.write_text("mine")
    assert find(f"{name}{suffix}").read_text() == "mine"
    assert find(own) == own


@pytest.mark.parametrize("given", ["atlantis", "atlantis.sdf", "deep/atlantis.sdf", "", ".."])
def test_unknown_world_names_the_known_ones(given: str) -> None:
    with pytest.raises(InputError) as caught:
        resources.world_path(given)
    message = str(caught.value)
    assert repr(given) in message
    assert "\n" not in message
    assert all(name in message for name in resources.names("worlds", ".sdf"))
