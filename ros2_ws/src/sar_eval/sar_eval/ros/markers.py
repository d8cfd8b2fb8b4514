"""What people see of an episode in RViz or Foxglove: drones, victims, the search area."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from sar_eval.bag.encoders import FRAME, NS
from sar_eval.episode.score import Score
from sar_eval.scenario.model import Episode
from sar_sim.judging.scoring import ReportVerdict
from sar_sim.vehicle.fleet import stamp_ns

_DRONE_M = 1.5
_VICTIM_M = 2.0
_BLUE, _RED, _GREEN, _GREY = (0.2, 0.4, 1.0), (0.9, 0.2, 0.2), (0.2, 0.8, 0.3), (0.6, 0.6, 0.6)


def markers_of(episode: Episode, score: Score) -> MarkerArray:
    """Drones where they truly are, victims red until they are found, the outline of the area."""
    markers = [
        _body(score.tick, "drones", i, Marker.SPHERE, place, _DRONE_M, _BLUE)
        for i, place in enumerate(score.state.position.tolist())
    ]
    for i, victim in enumerate(score.victims):
        found = any(s.issue is not None and s.issue.verdict is ReportVerdict.RIGHT for s in score.scorer.of_victim(i))
        colour = _GREEN if found else _RED
        place = victim.position_at(score.time_s).tolist()
        markers.append(_body(score.tick, "victims", i, Marker.CYLINDER, place, _VICTIM_M, colour))
    markers.append(_outline(score.tick, episode.world.area))
    return MarkerArray(markers=markers)


def _marker(tick: int, group: str, number: int, kind: int, colour: tuple[float, float, float]) -> Any:
    marker = Marker(ns=group, id=number, type=kind, action=Marker.ADD)
    marker.header.frame_id = FRAME
    marker.header.stamp.sec, marker.header.stamp.nanosec = divmod(stamp_ns(tick), NS)
    marker.pose.orientation.w = 1.0
    red, green, blue = colour
    marker.color = ColorRGBA(r=red, g=green, b=blue, a=1.0)
    return marker


def _body(
    tick: int, group: str, number: int, kind: int, place: list[float], size_m: float, colour: tuple[float, float, float]
) -> Any:
    marker = _marker(tick, group, number, kind, colour)
    marker.pose.position = Point(x=place[0], y=place[1], z=place[2])
    marker.scale.x = marker.scale.y = marker.scale.z = size_m
    return marker


def _outline(tick: int, area: tuple[float, float, float, float]) -> Any:
    west, south, east, north = map(float, area)
    marker = _marker(tick, "area", 0, Marker.LINE_STRIP, _GREY)
    corners = ((west, south), (east, south), (east, north), (west, north), (west, south))
    marker.points = [Point(x=x, y=y) for x, y in corners]
    marker.scale.x = 0.5
    return marker
