"""The CSI system of gz-sim8: reads the vehicles' true poses and publishes what their receivers hand over.

Loaded by gz::sim::systems::PythonSystemLoader as ``sar_gazebo.system``. Everything but Gazebo's own calls is in
:mod:`sar_gazebo.csi`. Not yet flown in Gazebo.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import gz.math7  # noqa: F401  registers the pose type that world_pose returns
from gz.msgs10.dataframe_pb2 import Dataframe
from gz.msgs10.stringmsg_pb2 import StringMsg
from gz.sim8 import K_NULL_ENTITY, Link, Model, World
from gz.transport13 import Node

from sar_core.errors import RunError
from sar_eval.config import Episode
from sar_gazebo.csi import Cadence, Health, Pose, Radio, encode, model_name, read_episode, warm_up
from sar_sim.receiver import Frames

HEALTH_TOPIC = "/sar/csi/health"
MICROSECOND = timedelta(microseconds=1)


class CsiSystem:
    """One per world. A callback that raises would switch the system off for good, so none ever does."""

    def __init__(self) -> None:
        self.health = Health()
        self._node = Node()
        self._tell = self._node.advertise(HEALTH_TOPIC, StringMsg)
        self._episode: Episode | None = None
        self._publishers: list[Any] = []
        self._world: Any = None

    def configure(self, entity: int, sdf: Any, ecm: Any, event_mgr: Any) -> None:
        try:
            self._world = World(entity)
            self._episode = read_episode(lambda key: str(sdf.get_string(key)) if sdf.has_element(key) else "")
            names = [model_name(i) for i in range(self._episode.scenario.drones)]
            self._publishers = [self._node.advertise(f"/{name}/csi", Dataframe) for name in names]
            warm_up(self._episode)
            self._start()
            self.health.configured = True
        except Exception as error:
            self.health.fail(error)
        self._publish_health()

    def post_update(self, info: Any, ecm: Any) -> None:
        if info.paused:
            return
        now_ns = info.sim_time // MICROSECOND * 1000
        if self.health.configured:
            try:
                self._step(now_ns, ecm)
            except Exception as error:
                self.health.fail(error)
        if self.health.due(now_ns):
            self._publish_health()

    def reset(self, info: Any, ecm: Any) -> None:
        """The world starts anew: so do receivers and ticks, with the same seed."""
        self.health.resets += 1
        if self.health.configured:
            self._start()

    def _start(self) -> None:
        assert self._episode is not None
        self._radio = Radio(self._episode)
        self._cadence = Cadence()
        self._links: list[Any] = []

    def _step(self, now_ns: int, ecm: Any) -> None:
        tick = self._cadence.due(now_ns)
        self.health.missed = self._cadence.missed
        if tick is None:
            return
        for drone, frames in enumerate(self._radio.listen(now_ns, tick, self._poses(ecm))):
            self._publishers[drone].publish(_dataframe(frames, tick, drone))
            self.health.frames += len(frames.address)
        self.health.ticks += 1

    def _poses(self, ecm: Any) -> list[Pose]:
        if not self._links:
            self._links = [self._find(ecm, model_name(i)) for i in range(self._radio.drones)]
        return [_pose(link, ecm) for link in self._links]

    def _find(self, ecm: Any, name: str) -> Any:
        entity = self._world.model_by_name(ecm, name)
        if entity == K_NULL_ENTITY:
            raise RunError(f"the world has no model {name!r}; stage it for as many drones as fly")
        return Link(Model(entity).canonical_link(ecm))

    def _publish_health(self) -> None:
        self._tell.publish(StringMsg(data=self.health.text()))


def _pose(link: Any, ecm: Any) -> Pose:
    pose = link.world_pose(ecm)
    if pose is None:
        raise RunError("a vehicle's link has no pose any more")
    at, turn = pose.pos(), pose.rot()
    return at.x(), at.y(), at.z(), turn.w(), turn.x(), turn.y(), turn.z()


def _dataframe(frames: Frames, tick: int, drone: int) -> Any:
    message = Dataframe(src_address="air", dst_address=model_name(drone), data=encode(frames, tick))
    message.header.stamp.sec, message.header.stamp.nsec = divmod(frames.stamp_ns, 1_000_000_000)
    message.header.data.add(key="rssi", value=[f"{value:g}" for value in frames.rssi_dbm])
    return message


def get_system() -> CsiSystem:
    """What the loader asks for."""
    return CsiSystem()
