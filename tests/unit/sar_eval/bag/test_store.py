"""Bags below a URL: whole or not there, in the store of a library we did not write."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from sar_core.errors import InputError, MissingDependencyError, RunError
from sar_eval.bag.store import UrlBags, open_bags, send_bag

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'sar-eval[cluster]'")


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/bags"


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    folder = tmp_path / "mission"
    folder.mkdir()
    (folder / "metadata.yaml").write_text("whole")
    (folder / "mission_0.mcap").write_bytes(b"\x89MCAP0")
    return folder


def test_a_bag_sent_and_kept_is_found_under_its_name_and_leaves_nothing_behind(url, bag):
    store = UrlBags(url)
    assert not store.has("mission")
    assert store.keep(send_bag(bag, store.scratch), "mission") == f"{url}/mission"
    assert store.has("mission")
    files = fsspec.open_files(f"{url}/mission/*")
    assert {file.path.rsplit("/", 1)[1] for file in files} == {"metadata.yaml", "mission_0.mcap"}
    with fsspec.open(f"{url}/mission/mission_0.mcap") as file:
        assert file.read() == b"\x89MCAP0"
    store.clear()
    assert not fsspec.open_files(f"{url}/.flying/**")


def test_a_bag_kept_again_replaces_the_old_one(url, bag):
    store = UrlBags(url)
    store.keep(send_bag(bag, store.scratch), "mission")
    (bag / "mission_0.mcap").rename(bag / "other_0.mcap")
    store.keep(send_bag(bag, store.scratch), "mission")
    files = fsspec.open_files(f"{url}/mission/*")
    assert {file.path.rsplit("/", 1)[1] for file in files} == {"metadata.yaml", "other_0.mcap"}


def test_a_bag_half_moved_is_not_there(url, bag, monkeypatch):
    store = UrlBags(url)
    flown = send_bag(bag, store.scratch)
    move, moved = store._files.mv, []

    def broken(source: str, target: str) -> None:
        if moved:
            raise OSError("the line went dead")
        moved.append(target)
        move(source, target)

    monkeypatch.setattr(store._files, "mv", broken)
    with pytest.raises(RunError, match=r"mission: cannot put the bag there \(the line went dead\)"):
        store.keep(flown, "mission")
    assert moved[0].endswith("mission_0.mcap") and not store.has("mission")


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [("nonsense://x", InputError, "bags-url = nonsense://x"), ("gdrive://x", MissingDependencyError, "gdrive")],
)
def test_a_url_nobody_can_write_to_is_refused(url, error, words, tmp_path):
    with pytest.raises(error, match=words):
        open_bags(tmp_path, url)
