"""Stand-ins for Gazebo's and ROS's Python modules, with the names and signatures their documentation gives.

They show that our shells call what is documented, in the documented order. They are no evidence that Gazebo works.
gz.sim8: World.model_by_name(ecm, name), Model.canonical_link(ecm), Link.world_pose(ecm), UpdateInfo.sim_time as a
timedelta. sdformat14: Element.has_element(name), Element.get_string(name). gz.transport13: Node.advertise(topic, type)
with publish(message), Node.subscribe(type, topic, callback), Node.unsubscribe(topic). Messages: the fields of gz.msgs10
as protobuf's Python has them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

K_NULL_ENTITY = 0
SECOND = 1_000_000_000


class Air:
    """Everything published, by topic, and who listens."""

    sent: ClassVar[dict[str, list[Any]]] = defaultdict(list)
    listeners: ClassVar[dict[str, list[Callable[[Any], None]]]] = defaultdict(list)

    @classmethod
    def reset(cls) -> None:
        cls.sent.clear()
        cls.listeners.clear()


class Publisher:
    def __init__(self, topic: str, message_type: type) -> None:
        self._topic, self._type = topic, message_type

    def publish(self, message: Any) -> bool:
        assert isinstance(message, self._type)
        Air.sent[self._topic].append(message)
        for listener in Air.listeners[self._topic]:
            listener(message)
        return True


class Node:
    def __init__(self) -> None:
        self._topics: set[str] = set()
        self._heard: dict[str, list[Callable[[Any], None]]] = defaultdict(list)

    def advertise(self, topic: str, msg_type: type) -> Publisher:
        assert topic not in self._topics, "a node cannot advertise a topic twice"
        self._topics.add(topic)
        return Publisher(topic, msg_type)

    def subscribe(self, msg_type: type, topic: str, callback: Callable[[Any], None]) -> bool:
        self._heard[topic].append(callback)
        Air.listeners[topic].append(callback)
        return True

    def unsubscribe(self, topic: str) -> bool:
        for callback in self._heard.pop(topic, []):
            Air.listeners[topic].remove(callback)
        return True


@dataclass
class Time:
    sec: int = 0
    nsec: int = 0


@dataclass
class Map:
    key: str = ""
    value: list[str] = field(default_factory=list)


class Repeated(list[Any]):
    """A repeated message field: grows by add(), as protobuf's do."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self._kind = kind

    def add(self, **values: Any) -> Any:
        self.append(self._kind(**values))
        return self[-1]


@dataclass
class Header:
    stamp: Time = field(default_factory=Time)
    data: Repeated = field(default_factory=lambda: Repeated(Map))


@dataclass
class Dataframe:
    src_address: str = ""
    dst_address: str = ""
    data: bytes = b""
    header: Header = field(default_factory=Header)


@dataclass
class StringMsg:
    data: str = ""
    header: Header = field(default_factory=Header)


@dataclass
class Vector3d:
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass
class QuaternionMsg:
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    w: float = 0.0


@dataclass
class PoseMsg:
    name: str = ""
    position: Vector3d = field(default_factory=Vector3d)
    orientation: QuaternionMsg = field(default_factory=lambda: QuaternionMsg(w=1.0))
    header: Header = field(default_factory=Header)


@dataclass
class Pose_V:  # noqa: N801  the message's own name
    pose: list[PoseMsg] = field(default_factory=list)
    header: Header = field(default_factory=Header)


@dataclass
class EntityMsg:
    name: str = ""
    id: int = 0


@dataclass
class Contact:
    collision1: EntityMsg
    collision2: EntityMsg
    position: list[Vector3d] = field(default_factory=list)
    depth: list[float] = field(default_factory=list)


@dataclass
class Contacts:
    contact: list[Contact] = field(default_factory=list)
    header: Header = field(default_factory=Header)


class Pose3d:
    """gz.math7's pose: pos() and rot(), whose numbers are methods as well."""

    def __init__(self, x: float, y: float, z: float, qw: float, qx: float, qy: float, qz: float) -> None:
        self._pos = SimpleNamespace(x=lambda: x, y=lambda: y, z=lambda: z)
        self._rot = SimpleNamespace(w=lambda: qw, x=lambda: qx, y=lambda: qy, z=lambda: qz)

    def pos(self) -> Any:
        return self._pos

    def rot(self) -> Any:
        return self._rot


class EntityComponentManager:
    """Opaque to Python systems; the test puts models' poses into it. Entity 1 is the world."""

    def __init__(self, models: list[str]) -> None:
        self.entities = {name: 10 * (i + 1) for i, name in enumerate(models)}
        self.poses: dict[str, Pose3d | None] = {}

    def model_of(self, link: int) -> str:
        return next(name for name, entity in self.entities.items() if entity + 1 == link)


class World:
    def __init__(self, entity: int) -> None:
        assert entity == 1

    def model_by_name(self, ecm: EntityComponentManager, name: str) -> int:
        return ecm.entities.get(name, K_NULL_ENTITY)


class Model:
    def __init__(self, entity: int) -> None:
        self._entity = entity

    def canonical_link(self, ecm: EntityComponentManager) -> int:
        return self._entity + 1


class Link:
    def __init__(self, entity: int) -> None:
        self._entity = entity

    def world_pose(self, ecm: EntityComponentManager) -> Pose3d | None:
        return ecm.poses.get(ecm.model_of(self._entity))


@dataclass
class UpdateInfo:
    sim_time: timedelta = timedelta()
    real_time: timedelta = timedelta()
    dt: timedelta = timedelta(milliseconds=4)
    paused: bool = False
    iterations: int = 0


class Element:
    """sdformat14's element of a plugin: what is not there must be asked for by has_element first."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def has_element(self, name: str) -> bool:
        return name in self._values

    def get_string(self, key: str = "") -> str:
        return self._values[key]


class RosMessage:
    """A ROS message: its fields as attributes; times and headers appear when first touched."""

    def __init__(self, **values: Any) -> None:
        for name in ("header", "begin", "end"):
            setattr(self, name, SimpleNamespace(stamp=SimpleNamespace(), frame_id="") if name == "header" else None)
        self.begin, self.end = SimpleNamespace(), SimpleNamespace()
        for name, value in values.items():
            setattr(self, name, value)


class CollisionEvent(RosMessage):
    DRONE_DRONE, DRONE_OBSTACLE = 1, 2
    PHASE_BEGIN, PHASE_END = 1, 2


class CsiBatch(RosMessage):
    pass


class TruthState(RosMessage):
    pass


class RosNode:
    """rclpy's node as far as the bridge needs it."""

    def __init__(self) -> None:
        self.sent: dict[str, list[Any]] = defaultdict(list)

    def create_publisher(self, msg_type: type, topic: str, depth: int) -> Any:
        assert depth > 0
        return SimpleNamespace(publish=lambda message: self._publish(topic, msg_type, message))

    def _publish(self, topic: str, msg_type: type, message: Any) -> None:
        assert isinstance(message, msg_type)
        self.sent[topic].append(message)


def publish(gz: Any, topic: str, message: Any) -> None:
    gz.Node().advertise(topic, type(message)).publish(message)


def stamped(message: Any, time_ns: int) -> Any:
    message.header.stamp.sec, message.header.stamp.nsec = divmod(time_ns, SECOND)
    return message


def modules() -> dict[str, ModuleType]:
    """Every module the shells import, by name."""
    contents: dict[str, dict[str, Any]] = {
        "gz": {},
        "gz.math7": {"Pose3d": Pose3d},
        "gz.msgs10": {},
        "gz.msgs10.contacts_pb2": {"Contacts": Contacts},
        "gz.msgs10.dataframe_pb2": {"Dataframe": Dataframe},
        "gz.msgs10.pose_v_pb2": {"Pose_V": Pose_V},
        "gz.msgs10.stringmsg_pb2": {"StringMsg": StringMsg},
        "gz.sim8": {"K_NULL_ENTITY": K_NULL_ENTITY, "Link": Link, "Model": Model, "World": World},
        "gz.transport13": {"Node": Node},
        "rclpy": {},
        "rclpy.executors": {"ExternalShutdownException": type("ExternalShutdownException", (Exception,), {})},
        "rclpy.utilities": {"remove_ros_args": lambda args: args},
        "geometry_msgs": {},
        "geometry_msgs.msg": {"Point": SimpleNamespace, "Quaternion": SimpleNamespace, "Vector3": SimpleNamespace},
        "sar_msgs": {},
        "sar_msgs.msg": {"CollisionEvent": CollisionEvent, "CsiBatch": CsiBatch, "TruthState": TruthState},
    }
    made = {}
    for name, values in contents.items():
        module = ModuleType(name)
        vars(module).update(values)
        made[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(made[parent], child, module)
    return made
