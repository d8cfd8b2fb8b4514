"""The CSI system of gz-sim8: reads the vehicles' true poses and publishes what their receivers hand over.

Loaded by gz::sim::systems::PythonSystemLoader as ``sar_gazebo.system``. Everything but Gazebo's own calls is in
:mod:`sar_gazebo.csi`.
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
from sar_eval.scenario.model import Episode
from sar_gazebo import csi
from sar_gazebo.csi import Cadence, Pose, model_name


class CsiSystem:
    """One per world. A callback that raises would switch the system off for good, so none ever does."""

    def __init__(self) -> None:
        self.health = csi.CsiHealth()
        self._node = Node()
        self._tell = self._node.advertise(csi.HEALTH_TOPIC, StringMsg)
        self._node.subscribe(StringMsg, csi.BEGIN_TOPIC, self._on_begin)
        self._asked: str | None = None
        self._episode: Episode | None = None
        self._cadence: Cadence | None = None

    def configure(self, entity: int, sdf: Any, ecm: Any, event_mgr: Any) -> None:
        try:
            self._world = World(entity)
            self._episode = csi.read_episode(lambda key: str(sdf.get_string(key)) if sdf.has_element(key) else "")
            topics = [f"/{model_name(i)}/csi" for i in range(self._episode.scenario.drones)]
            self._publishers = [self._node.advertise(topic, Dataframe) for topic in topics]
            csi.warm_up(self._episode)
            self.health.configured = True
        except Exception as error:
            self.health.fail(error)
        self._publish_health()

    def post_update(self, info: Any, ecm: Any) -> None:
        now_ns = info.sim_time // timedelta(microseconds=1) * 1000
        try:
            if self._asked is not None and self.health.configured:
                self._start()
            if self._cadence is not None and not info.paused:
                self._step(self._cadence, now_ns, ecm)
        except Exception as error:
            self.health.fail(error)
        if self.health.due(now_ns):
            self._publish_health()

    def reset(self, info: Any, ecm: Any) -> None:
        """The world starts anew; the episode begins when the evaluator says so again."""
        self.health.resets += 1
        self._cadence = self.health.begin_ns = self._asked = None

    def _on_begin(self, message: Any) -> None:
        """From a thread of the transport: only noted. The evaluator repeats it until the health shows it."""
        if message.data != str(self.health.begin_ns):
            self._asked = message.data

    def _start(self) -> None:
        """Receivers and ticks from the begin on, always with the same seed."""
        assert self._episode is not None and self._asked is not None
        asked, self._asked = self._asked, None
        if int(asked) != self.health.begin_ns:
            self.health.begin_ns = int(asked)
            self._cadence, self._radio = Cadence(self.health.begin_ns), csi.Radio(self._episode)
            self._links: list[Any] = []
        self._publish_health()

    def _step(self, cadence: Cadence, now_ns: int, ecm: Any) -> None:
        tick = cadence.due(now_ns)
        self.health.missed = cadence.missed
        if tick is None:
            return
        heard = self._radio.listen(now_ns - cadence.begin_ns, tick, self._poses(ecm))
        for drone, frames in enumerate(heard):
            message = Dataframe(src_address="air", dst_address=model_name(drone), data=csi.encode(frames, tick))
            message.header.stamp.sec, message.header.stamp.nsec = divmod(now_ns, 1_000_000_000)
            message.header.data.add(key="rssi", value=[f"{value:g}" for value in frames.rssi_dbm])
            self._publishers[drone].publish(message)
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


def get_system() -> CsiSystem:
    """What the loader asks for."""
    return CsiSystem()
