"""The tier that this package brings: real PX4 in Gazebo Harmonic, found by sar_eval's entry point.

Nothing of Gazebo is imported before the tier is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sar_eval.backends.backend import Receiving, Stop
from sar_eval.px4.gazebo import find_parts
from sar_eval.px4.mavlink import dialect
from sar_eval.scenario.model import Episode
from sar_eval.scenario.tiers import Tier

if TYPE_CHECKING:
    from sar_gazebo.world import GazeboWorld

GAZEBO = Tier(
    "gazebo",
    "real PX4 in Gazebo",
    backend="sar_gazebo.tier:open_gazebo",
    receiver="sar_gazebo.tier:csi_listener_of",
    needs="sar_gazebo.tier:require",
    flies={"vehicle": "x500", "thrust_variation": 0.0},
    always_senses=True,
    patience={"lockstep_timeout_s": 10.0, "ready_timeout_s": 300.0},
)
"""It has PX4's x500, equal motors, and wind without gusts."""


def require(_: str) -> None:
    """Refuse where Gazebo, PX4, its models or a MAVLink client are missing."""
    dialect()
    find_parts()


def csi_listener_of(episode: Episode) -> Receiving:
    """What the CSI system publishes."""
    from sar_gazebo.csilistener import CsiListener

    return CsiListener(episode.scenario.drones)


def open_gazebo(episode: Episode, speed: float, stop: Stop) -> GazeboWorld:
    """An episode's staged world in a Gazebo of its own, its vehicles ready for a take-off."""
    from sar_gazebo.process import GazeboProcess
    from sar_gazebo.truthlistener import TruthListener
    from sar_gazebo.world import GazeboWorld

    truth_listener = TruthListener(episode.scenario.drones, tuple(episode.world.obstacle_names), speed)
    world = GazeboWorld(episode, GazeboProcess(episode, truth_listener, stop), truth_listener, speed, stop)
    world.open()
    return world
