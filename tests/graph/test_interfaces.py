"""The built messages are the committed ones, and ROS 2 and the bag writer call each by the same hash."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from sar_eval.bag.messages import type_hash, typestore
from sar_eval.ros import interfaces
from sar_eval.scenario.resources import share_dir

NAMES = sorted(file.stem for file in (share_dir("sar_msgs") / "msg").glob("*.msg"))


@pytest.mark.parametrize("name", NAMES)
def test_ros_and_bags_agree_on_the_type(name: str) -> None:
    built = importlib.import_module("sar_msgs.msg")
    share = next(
        p / "share" / "sar_msgs" for p in Path(str(built.__file__)).parents if (p / "share" / "sar_msgs").is_dir()
    )
    described = json.loads((share / "msg" / f"{name}.json").read_text())
    hashes = {entry["type_name"]: entry["hash_string"] for entry in described["type_hashes"]}
    kind = f"sar_msgs/msg/{name}"
    assert type_hash(typestore(), kind) == hashes[kind]
    fields = [field for field, _ in typestore().get_msgdef(kind).fields]
    assert list(getattr(built, name).get_fields_and_field_types()) == fields


def test_nothing_is_left_to_build() -> None:
    if not (Path(sys.prefix) / interfaces.STAMP).is_file():
        pytest.skip("sar_msgs was not built by sar-eval msgs build but by colcon, which keeps track itself")
    assert not interfaces.build_messages()
