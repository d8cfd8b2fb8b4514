"""The layouts for RViz, Foxglove and PlotJuggler name topics and fields that a mission has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from rosbags.interfaces import Nodetype

from sar_eval.bag.encoders import FRAME
from sar_eval.bag.messages import typestore
from sar_eval.ros.nodetable import topic_table
from sar_eval.scenario.resources import share_dir

LAYOUTS = share_dir("configs") / "layouts"
TYPES = {wire.topic: wire.msgtype for wire in topic_table(4)}


def scalar(msgtype: str, fields: list[str]) -> bool:
    """Whether a message has this field, and it is a number."""
    for k, name in enumerate(fields):
        members = dict(typestore().get_msgdef(msgtype).fields)
        kind, inner = members.get(name, (None, None))
        if kind == Nodetype.BASE:
            return k == len(fields) - 1 and inner[0] != "string"
        if kind != Nodetype.NAME:
            return False
        msgtype = inner
    return False


def strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from strings(key)
            yield from strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from strings(value)


def assert_field(topic: str, path: str, separator: str) -> None:
    assert topic in TYPES, topic
    assert scalar(TYPES[topic], path.split(separator)), f"{topic}: {path}"


def split_slashes(name: str) -> tuple[str, str]:
    topic = next(t for t in sorted(TYPES, key=len, reverse=True) if name.startswith(f"{t}/"))
    return topic, name.removeprefix(f"{topic}/")


def test_rviz() -> None:
    layout = yaml.safe_load((LAYOUTS / "mission.rviz").read_text())["Visualization Manager"]
    assert layout["Global Options"]["Fixed Frame"] == FRAME
    kinds = {
        "rviz_default_plugins/Map": "nav_msgs/msg/OccupancyGrid",
        "rviz_default_plugins/MarkerArray": "visualization_msgs/msg/MarkerArray",
        "rviz_default_plugins/Odometry": "nav_msgs/msg/Odometry",
    }
    shown = [display for display in layout["Displays"] if "Topic" in display]
    assert {TYPES[d["Topic"]["Value"]] for d in shown} == set(kinds.values())
    for display in shown:
        assert TYPES[display["Topic"]["Value"]] == kinds[display["Class"]]
        assert display["Topic"]["Reliability Policy"] == "Reliable"


def test_foxglove() -> None:
    layout = json.loads((LAYOUTS / "mission.foxglove.json").read_text())
    panels = layout["configById"]
    assert sorted(s for s in strings(layout["layout"]) if "!" in s) == sorted(panels)
    plotted = [path["value"] for panel in panels.values() for path in panel.get("paths", [])]
    assert plotted
    for value in plotted:
        topic, _, path = value.partition(".")
        assert_field(topic, path, ".")
    whole = [s for s in strings(panels) if re.fullmatch(r"/[a-z0-9_/]+", s)]
    assert set(whole) <= set(TYPES)
    assert panels["3D!mission"]["fixedFrame"] == FRAME


def test_plotjuggler() -> None:
    curves = list(ElementTree.parse(LAYOUTS / "mission.plotjuggler.xml").iter("curve"))
    assert curves
    for curve in curves:
        names = [curve.get("curve_x"), curve.get("curve_y")] if curve.get("curve_x") else [curve.get("name")]
        for name in names:
            assert name is not None
            assert_field(*split_slashes(name), "/")


@pytest.mark.parametrize(
    ("path", "is_field"), [("pose.pose.position.x", True), ("pose.pose", False), ("pose.nothing", False)]
)
def test_a_field_that_is_not_there_is_seen(path: str, is_field: bool) -> None:
    assert scalar("nav_msgs/msg/Odometry", path.split(".")) is is_field
