"""The nodes of an episode as a graph, and the topics between them: one table for launch files and for our own runner.

``node_table(settings)`` gives a ``NodeRow`` per node: package, executable, name, namespace, and its parameters as plain
values, ready for ``launch_ros.actions.Node(package=..., executable=..., name=..., namespace=..., parameters=[...])``.
``topic_table(drones, sensing, csi)`` gives a ``Wire`` per topic: type, who publishes, who subscribes, whether it is
latched and whether it is recorded. ``PARAMETERS`` describes every parameter a node declares. Nothing here needs ROS.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sar_eval.bag.encoders import episode_topics
from sar_eval.scenario.model import Episode
from sar_eval.scenario.tiers import piloted, tier_named

PACKAGE = "sar_eval"
NODES = ("sim", "csi", "swarm", "referee", "recorder", "manager")
ANSWERING = ("csi", "swarm", "referee", "recorder", "manager")
"""Nodes that answer every tick; the simulator, whose ticks they are, waits for them."""
TELLING = ("sim", "csi", "referee", "recorder")
"""Nodes that have something to say on the record."""
_WAITS_FOR = {"swarm": {"csi", "manager"}, "referee": {"swarm", "manager"}}
"""Whose work of the same tick a node needs."""
DEPTH = 200
"""Messages a reliable topic holds for a slow reader: more than any topic carries in the two ticks a reader may lag."""
STARTED = ".started"
"""Suffix of a file beside the record's, which the manager makes as the first tick begins: the search time so far."""
LONGEST_S = 600.0
INTEGER_LIMIT = (1 << 63) - 1


@dataclass(frozen=True)
class NodeParameter:
    """A parameter as a node declares it; all are fixed once the node runs."""

    name: str
    default: str | int | float | bool
    description: str
    nodes: tuple[str, ...] = NODES
    low: float | None = None
    high: float | None = None


PARAMETERS = (
    NodeParameter("scenario", "{}", "Scenario as JSON text; keys as in configs/scenarios/default.yaml."),
    NodeParameter("seed", 0, "Seed of sensor, link and motor noise.", low=0, high=INTEGER_LIMIT),
    NodeParameter("episode", 0, "Index in the episode set: decides wind and layout.", low=0, high=(1 << 32) - 1),
    NodeParameter("tier", "embedded", "What flies: embedded, sih, gazebo or sitl."),
    NodeParameter(
        "run",
        0,
        "Number that all nodes of one graph share; messages of another are refused.",
        low=0,
        high=INTEGER_LIMIT,
    ),
    NodeParameter("record_csi", False, "Publish and record raw CSI frames too.", ("csi", "recorder")),
    NodeParameter("bag", "", "Folder of the bag to be written; empty: no bag.", ("recorder",)),
    NodeParameter("record_file", "", "File for the episode record; empty: standard output.", ("manager",)),
    NodeParameter(
        "lockstep_timeout_s",
        2.0,
        "Wall time after which a silent node ends the episode.",
        ("sim", "manager"),
        0.1,
        LONGEST_S,
    ),
    NodeParameter(
        "ready_timeout_s", 30.0, "Wall time the nodes have to find each other.", ("manager",), 0.1, LONGEST_S
    ),
    NodeParameter(
        "sim_speed", 1.0, "Simulated over wall time of real autopilots (sih, gazebo, sitl).", ("sim",), 0.1, 8.0
    ),
    NodeParameter(
        "speed_factor", 0.0, "Simulated over wall time, at most; 0: as fast as it goes.", ("sim",), 0.0, 1000.0
    ),
)


@dataclass(frozen=True)
class NodeRow:
    """One node: what ROS needs to start it."""

    name: str
    executable: str
    parameters: dict[str, Any]
    package: str = PACKAGE
    namespace: str = "/"


@dataclass(frozen=True)
class Settings:
    """What a graph is asked to fly, and how."""

    scenario: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    episode: int = 0
    tier: str = "embedded"
    run: int = 0
    bag: Path | None = None
    record_csi: bool = False
    record_file: Path | None = None
    lockstep_timeout_s: float = 2.0
    ready_timeout_s: float = 30.0
    sim_speed: float = 1.0
    speed_factor: float = 0.0

    def parameters(self, node: str) -> dict[str, Any]:
        """The parameters of one node."""
        given = {
            **vars(self),
            "scenario": json.dumps(self.scenario),
            "bag": "" if self.bag is None else str(self.bag),
            "record_file": "" if self.record_file is None else str(self.record_file),
        }
        return {parameter.name: given[parameter.name] for parameter in PARAMETERS if node in parameter.nodes}


def settings_of(episode: Episode, **others: Any) -> Settings:
    """Settings that fly a prepared episode."""
    patience = tier_named(episode.tier).patience
    if patience:
        slowness = 1.0 / min(others.get("sim_speed") or 1.0, 1.0)
        least = {name: min(least_s * slowness, LONGEST_S) for name, least_s in patience.items()}
        others |= {name: max(least_s, others.get(name) or 0.0) for name, least_s in least.items()}
    return Settings(
        scenario=episode.plain_scenario(), seed=episode.seed, episode=episode.index, tier=episode.tier, **others
    )


def node_table(settings: Settings) -> tuple[NodeRow, ...]:
    """Every node of the graph, in the order in which they are started."""
    return tuple(NodeRow(name, executable_of(name, settings.tier), settings.parameters(name)) for name in NODES)


def executable_of(name: str, tier: str) -> str:
    """What is started as a node; where real autopilots fly, the world's part is played by the bridge to them."""
    return "px4_bridge_node" if name == "sim" and piloted(tier) else f"{name}_node"


def culprits(missing: Iterable[str]) -> list[str]:
    """Of the parts a tick lacks (a node's answer, or node/topic), the nodes that hold up the others."""
    silent = {part.split("/")[0] for part in missing}
    return sorted(name for name in silent if not silent & _upstream(name))


def _upstream(name: str) -> set[str]:
    direct = _WAITS_FOR.get(name, set())
    return direct.union(*(_upstream(other) for other in direct))


@dataclass(frozen=True)
class TopicWire:
    """One topic: its type, its ends, whether late readers get the last message, whether the bag gets all of them."""

    topic: str
    msgtype: str
    publishers: tuple[str, ...]
    subscribers: tuple[str, ...]
    latched: bool = False
    recorded: bool = False


_INNER = (
    TopicWire("/episode/ready", "sar_msgs/msg/Ready", NODES, ("manager", "sim"), latched=True),
    TopicWire("/episode/tick", "sar_msgs/msg/Tick", ("sim",), ("recorder",)),
    TopicWire("/episode/tick_done", "sar_msgs/msg/TickDone", ANSWERING, ("sim",)),
    TopicWire("/episode/orders", "sar_msgs/msg/Orders", ("manager",), ("sim", "swarm", "referee")),
    TopicWire("/episode/end", "sar_msgs/msg/EpisodeEnd", ("sim", "manager"), NODES, latched=True),
    TopicWire("/episode/result", "sar_msgs/msg/EpisodeResult", TELLING, ("manager",), latched=True),
    TopicWire("/sim/truth", "sar_msgs/msg/SimTruth", ("sim",), ("csi", "referee")),
    TopicWire("/sim/estimates", "sar_msgs/msg/SimEstimates", ("sim",), ("swarm", "manager")),
    TopicWire("/csi/frames", "sar_msgs/msg/CsiFrames", ("csi",), ("swarm",)),
    TopicWire("/swarm/tick", "sar_msgs/msg/SwarmTick", ("swarm",), ("sim", "referee", "manager")),
    TopicWire("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", NODES, ("manager",)),
    TopicWire("/episode/markers", "visualization_msgs/msg/MarkerArray", ("referee",), ()),
)
_SENDERS = {
    "clock": "sim",
    "state": "sim",
    "odometry": "sim",
    "info": "manager",
    "status": "referee",
    "collision": "referee",
    "report": "referee",
    "coverage": "referee",
    "devices": "csi",
    "csi": "csi",
    "setpoint": "swarm",
    "detection": "swarm",
    "gate": "swarm",
    "reports": "swarm",
}
"""Who publishes a recorded topic, by the last word of its name."""


def _sender(topic: str) -> str:
    last = topic.rsplit("/", 1)[-1]
    return "swarm" if last == "status" and topic.startswith("/uav_") else _SENDERS[last]


def topic_table(drones: int, sensing: bool = True, csi: bool = False) -> tuple[TopicWire, ...]:
    """Every topic of a graph with so many drones; what is recorded is what an episode in one process records."""
    recorded = [
        TopicWire(topic.name, topic.msgtype, (_sender(topic.name),), ("recorder",), topic.name == "/episode/info", True)
        for topic in episode_topics(drones, sensing, csi)
    ]
    return (*_INNER, *recorded)


def wires_of(episode: Episode, csi: bool) -> tuple[TopicWire, ...]:
    """The topics of the graph that flies an episode."""
    sensing = episode.radio is not None
    return topic_table(episode.scenario.drones, sensing, csi and sensing)
