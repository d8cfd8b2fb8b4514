"""What every node of the graph is made of: its parameters, its topics, its answers to ticks, its complaints."""

from __future__ import annotations

import importlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sar_msgs.msg import EpisodeEnd, EpisodeResult, Ready, TickDone

from sar_eval.episode.lockstep import Gathering, UnwelcomeError, digest, padded
from sar_eval.ros.codec import counts
from sar_eval.ros.managed import ManagedNode
from sar_eval.ros.nodetable import DEPTH, PARAMETERS, TopicWire, wires_of
from sar_eval.scenario.model import Episode, scenario_from
from sar_eval.scenario.prepare import prepare

DIAGNOSTICS_S = 1.0
GRACE_S = 5.0
"""How long a node that was asked to stop waits for the end of the episode."""
ACKNOWLEDGE_S = 1.0
Handler = Callable[[Any], None]


class Shell:
    """A node under way. Subclasses name a handler for each topic they subscribe to, and call into the core."""

    def __init__(self, name: str, given: Mapping[str, Any] | None = None, context: Any = None) -> None:
        overrides = [Parameter(key, value=value) for key, value in (given or {}).items()]
        self.name = name
        self.node = ManagedNode(name, context=context, parameter_overrides=overrides)
        self.active = False
        self.values = declare(self.node, name)
        self.run: int = self.values["run"]
        scenario = scenario_from(json.loads(self.values["scenario"]), f"{name}: parameter scenario")
        seed, index, tier = self.values["seed"], self.values["episode"], self.values["tier"]
        self.episode: Episode = prepare(scenario, seed, index, tier)
        self.wires = {w.topic: w for w in wires_of(self.episode, bool(self.values.get("record_csi", False)))}
        self.finished = False
        self.ready = False
        self.stop_asked_s: float | None = None
        self._problems: Counter[tuple[str, str]] = Counter()
        self._diagnosed_s = 0.0
        self._digests: list[int] = []
        self._publishers: dict[str, Any] = {}
        self._subscriptions: dict[str, Any] = {}

    def connect(self, handlers: Mapping[str, Handler]) -> None:
        """Create every publisher and subscription that the table gives this node."""
        for topic, wire in self.wires.items():
            kind, qos = message_class(wire.msgtype), qos_of(wire)
            if self.name in wire.publishers:
                quiet = PublisherEventCallbacks(use_default_callbacks=False)
                self._publishers[topic] = self.node.create_publisher(kind, topic, qos, event_callbacks=quiet)
            if self.name in wire.subscribers:
                self._subscriptions[topic] = self.node.create_subscription(
                    kind,
                    topic,
                    handlers[topic],
                    qos,
                    raw=wire.recorded,
                    event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
                )
        self.node.move("configure")

    def activate(self) -> None:
        """The first tick begins."""
        if not self.active:
            self.active = True
            self.node.move("activate")

    def send(self, topic: str, message: Any) -> None:
        self._publishers[topic].publish(message)

    def keep(self, topic: str, payload: bytes) -> None:
        """Publish a message that belongs into the bag, and remember to announce it."""
        payload = padded(payload)
        self._digests.append(digest(topic, payload))
        self._publishers[topic].publish(payload)

    def take_digests(self) -> list[int]:
        digests, self._digests = self._digests, []
        return digests

    def answer(self, tick: int, verdict: str = "") -> None:
        """All that this node does in a tick is done."""
        self.activate()
        done = TickDone(run=self.run, tick=tick, node=self.name, verdict=verdict, digests=counts(self.take_digests()))
        self.send("/episode/tick_done", done)

    def tell(self, outcome: Mapping[str, Any]) -> None:
        """Something for the record."""
        self.send("/episode/result", EpisodeResult(run=self.run, node=self.name, json=json.dumps(outcome)))

    def ours(self, topic: str, message: Any) -> bool:
        """Whether a message belongs to this run; one that does not is named and left aside."""
        if message.run == self.run:
            return True
        self.complain("foreign run", f"{topic}: a message of run {message.run}, this is run {self.run}")
        return False

    def gathered(self, gathering: Gathering, part: str, tick: int, message: Any) -> bool:
        """Put a part in its place; one that has none is named and left aside."""
        try:
            gathering.put(part, tick, message)
        except UnwelcomeError as error:
            self.complain("out of step", str(error))
            return False
        return True

    def complain(self, kind: str, what: str) -> None:
        """Something is wrong that must not reach the results: count it and tell it on /diagnostics."""
        self._problems[kind, what] += 1
        if self._problems[kind, what] == 1:
            self.node.get_logger().warning(f"{kind}: {what}")
            self.diagnose()

    def problems(self) -> dict[str, int]:
        """What was wrong so far, and how often."""
        return {f"{kind}: {what}": count for (kind, what), count in self._problems.items()}

    def diagnose(self) -> None:
        """How this node does, for people and for the record."""
        self._diagnosed_s = time.monotonic()
        status = DiagnosticStatus(name=f"sar_eval: {self.name}", hardware_id=self.episode.episode_id)
        status.level = DiagnosticStatus.WARN if self._problems else DiagnosticStatus.OK
        status.message = "; ".join(self.problems()) or "in step"
        status.values = [KeyValue(key=what, value=str(count)) for what, count in self.problems().items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.node.get_clock().now().to_msg()
        self.send("/diagnostics", array)

    def housekeeping(self) -> None:
        """Now and then, by the wall clock: find the others, tell how things are, see whether to stop."""
        now = time.monotonic()
        if not self.ready and self.matched():
            self.ready = True
            self.on_ready()
        if now - self._diagnosed_s > DIAGNOSTICS_S:
            self.diagnose()
        if self.stop_asked_s is not None and now - self.stop_asked_s > GRACE_S:
            self.finish()

    def matched(self) -> bool:
        """Whether every partner of the table is there, on both ends of every topic."""
        for topic, publisher in self._publishers.items():
            if publisher.get_subscription_count() < len(self.wires[topic].subscribers):
                return False
        for topic, subscription in self._subscriptions.items():
            if subscription.get_publisher_count() < len(self.wires[topic].publishers):
                return False
        return not self.absent()

    def absent(self) -> list[str]:
        """Partners of the table that cannot be seen, as topic and node."""
        missing = []
        for topic in self._publishers:
            there = {info.node_name for info in self.node.get_subscriptions_info_by_topic(topic)}
            missing += [f"{topic} -> {name}" for name in self.wires[topic].subscribers if name not in there]
        for topic in self._subscriptions:
            there = {info.node_name for info in self.node.get_publishers_info_by_topic(topic)}
            missing += [f"{name} -> {topic}" for name in self.wires[topic].publishers if name not in there]
        return missing

    def on_ready(self) -> None:
        self.node.get_logger().info("all partners are seen")
        self.send("/episode/ready", Ready(run=self.run, node=self.name))

    def ask_to_stop(self) -> None:
        """A signal came; the episode is to end properly, however many follow."""
        if self.stop_asked_s is None:
            self.stop_asked_s = time.monotonic()

    def on_end(self, message: EpisodeEnd) -> None:
        """The episode is over."""
        if self.ours("/episode/end", message):
            self.finish()

    def finish(self) -> None:
        """Nothing more is to come from this node."""
        if not self.finished:
            self.finished = True
            self.diagnose()
            if self.active:
                self.node.move("deactivate")

    def destroy(self) -> None:
        """Leave when everyone has got what this node sent, or after a moment."""
        give_up = time.monotonic() + ACKNOWLEDGE_S
        for publisher in self._publishers.values():
            left_s = max(give_up - time.monotonic(), 0.0)
            publisher.wait_for_all_acked(Duration(nanoseconds=int(left_s * 1e9)))
        self.node.destroy_node()


def declare(node: Any, name: str) -> dict[str, Any]:
    """Declare a node's parameters as the table describes them; their values."""
    values = {}
    for row in PARAMETERS:
        if name not in row.nodes:
            continue
        about = ParameterDescriptor(description=row.description, read_only=True)
        if row.low is not None and row.high is not None:
            if isinstance(row.default, int):
                about.integer_range = [IntegerRange(from_value=int(row.low), to_value=int(row.high), step=1)]
            else:
                about.floating_point_range = [FloatingPointRange(from_value=row.low, to_value=row.high, step=0.0)]
        values[row.name] = node.declare_parameter(row.name, row.default, about).value
    return values


def message_class(msgtype: str) -> Any:
    """The class of a message type such as sar_msgs/msg/Tick."""
    package, _, kind = msgtype.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)


def qos_of(wire: TopicWire) -> QoSProfile:
    """Reliable, as everything in lockstep is."""
    durability = DurabilityPolicy.TRANSIENT_LOCAL if wire.latched else DurabilityPolicy.VOLATILE
    return QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.RELIABLE, durability=durability)
