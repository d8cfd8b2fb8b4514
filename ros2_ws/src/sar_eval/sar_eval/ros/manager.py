"""The episode manager as a node: waits until all are ready, gives the orders, and makes the record of the episode."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import QoSCompatibility, qos_check_compatible
from sar_msgs.msg import EpisodeEnd, EpisodeResult, Ready, SimEstimates, SwarmTick

from sar_eval import __version__
from sar_eval.backends.backend import time_of
from sar_eval.bag.encoders import Encoder
from sar_eval.episode.invalid import invalid_record
from sar_eval.episode.lockstep import Gathering
from sar_eval.episode.operator import Orders, direct
from sar_eval.episode.record import Record
from sar_eval.ros.codec import lowest_m, orders_message, read_statuses
from sar_eval.ros.nodetable import NODES, STARTED, TopicWire
from sar_eval.ros.shell import Shell
from sar_eval.scenario.tiers import piloted
from sar_sim.vehicle.fleet import stamp_ns

LATER_S = 1.0
"""The simulator names a silent node; only when it is silent itself, this much later, the manager does."""
COLLECT_S = 10.0
COLLECT_SPOILT_S = 1.0
"""Wall time for result and bag after an ordinary end, and after one in which nodes fell silent."""
PROGRESS_S = 0.5
"""Wall time between words on how far the search is."""
AUDITED_AT_ONCE = 2
"""Topics looked at between ticks; more would hold the tick up."""
SHARED = ("/diagnostics",)
"""Topics on which strangers are welcome."""


class ManagerNode(Shell):
    """The operator of the swarm and the clerk of the episode."""

    def __init__(self, given: Mapping[str, Any] | None = None, context: Any = None) -> None:
        super().__init__("manager", given, context)
        self.encoder = Encoder(self.episode)
        self.orders = Orders()
        self.gathering = Gathering(["estimates", "swarm"])
        self.gathering.put("swarm", 0)
        self.partners: set[str] = set()
        self.born_s = self.progress_s = time.monotonic()
        self.to_audit = itertools.cycle([wire for wire in self.wires.values() if wire.topic not in SHARED])
        self.started_s: float | None = None
        self.progress_told_s = 0.0
        self.ended: EpisodeEnd | None = None
        self.ended_s = 0.0
        self.results: dict[str, dict[str, Any]] = {}
        self.diagnosed: dict[str, dict[str, int]] = {}
        self.record: Record | None = None
        self.connect(
            {
                "/episode/ready": self.on_partner,
                "/sim/estimates": self.on_estimates,
                "/swarm/tick": self.on_swarm,
                "/episode/end": self.on_end,
                "/episode/result": self.on_result,
                "/diagnostics": self.on_diagnostics,
            }
        )

    def on_ready(self) -> None:
        self.start_when_all_are()

    def on_partner(self, message: Ready) -> None:
        if self.ours("/episode/ready", message):
            self.partners.add(message.node)
            self.start_when_all_are()

    def start_when_all_are(self) -> None:
        waiting = set(NODES) - {self.name} - self.partners
        if self.ready and not waiting and self.started_s is None:
            self.started_s = self.progress_s = time.monotonic()
            self.tell_progress(self.started_s)
            self.node.get_logger().info(f"{self.episode.episode_id}: all are ready, the first tick begins")
            self.send("/episode/ready", Ready(run=self.run, node=self.name))

    def tell_progress(self, now: float) -> None:
        """To whoever started the graph, beside the record."""
        self.progress_told_s = now
        if self.values["record_file"]:
            search_time_s = self.orders.search_time_s(time_of(self.gathering.tick))
            file = Path(self.values["record_file"]).with_suffix(STARTED)
            file.write_text(f"{search_time_s:.2f}", encoding="ascii")

    def on_estimates(self, message: SimEstimates) -> None:
        if self.ours("/sim/estimates", message):
            self.gather("estimates", message.tick, message)

    def on_swarm(self, message: SwarmTick) -> None:
        """How the drones stand after a tick decides on the orders of the next."""
        if self.ours("/swarm/tick", message):
            self.gather("swarm", message.tick + 1, message)

    def gather(self, part: str, tick: int, message: Any) -> None:
        if not self.gathered(self.gathering, part, tick, message):
            return
        parts = self.gathering.take()
        if parts is not None:
            self.progress_s = time.monotonic()
            self.step(parts["estimates"], parts["swarm"])

    def step(self, estimates: SimEstimates, swarm: SwarmTick | None) -> None:
        tick = estimates.tick
        if swarm is not None:
            statuses = read_statuses(swarm)
            self.orders = direct(self.orders, self.episode, time_of(tick), lowest_m(estimates), statuses)
        if self.stop_asked_s is not None and not self.orders.invalid_reason:
            self.orders = self.orders._replace(invalid_reason="interrupted")
        self.send("/episode/orders", orders_message(self.run, tick, self.orders))
        if tick == 0:
            self.keep(*self.encoder.info(stamp_ns(0)))
        self.answer(tick)

    def on_end(self, message: EpisodeEnd) -> None:
        if self.ours("/episode/end", message) and self.ended is None:
            self.ended, self.ended_s = message, time.monotonic()
            self.node.get_logger().info(f"over at tick {message.tick}: {message.reason or 'done'}")
            for wire in (
                self.wires.values() if self.started_s is not None else ()
            ):  # before that some are still nameless
                if wire.topic not in SHARED:
                    self.audit(wire)
            self.conclude_when_told()

    def on_result(self, message: EpisodeResult) -> None:
        if self.ours("/episode/result", message):
            self.results[message.node] = json.loads(message.json)
            self.conclude_when_told()

    def on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.startswith("sar_eval: ") and status.level != DiagnosticStatus.OK:
                node = status.name.removeprefix("sar_eval: ")
                self.diagnosed[node] = {pair.key: int(pair.value) for pair in status.values}

    def housekeeping(self) -> None:
        super().housekeeping()
        now = time.monotonic()
        if self.ended is not None:
            self.conclude_when_told()
        elif self.started_s is None:
            self.wait_for_partners(now)
        elif now - self.progress_s > self.patience_s:
            self.complain("silent node", f"sim has not begun tick {self.gathering.tick}")
            self.declare_end("lockstep_timeout", ["sim"])
        else:
            if now - self.progress_told_s > PROGRESS_S:
                self.tell_progress(now)
            for _ in range(AUDITED_AT_ONCE):
                self.audit(next(self.to_audit))

    @property
    def patience_s(self) -> float:
        """Wall time for which the simulator may be silent; autopilots take their time before the first tick."""
        if self.gathering.tick == 0:
            return float(self.values["ready_timeout_s"])
        return float(self.values["lockstep_timeout_s"]) + LATER_S

    def wait_for_partners(self, now: float) -> None:
        if self.stop_asked_s is not None:
            self.declare_end("interrupted", [])
        elif now - self.born_s > self.values["ready_timeout_s"]:
            absent = sorted(set(NODES) - {self.name} - self.partners)
            self.complain(
                "not ready", f"{', '.join(absent or self.absent())} within {self.values['ready_timeout_s']:g} s"
            )
            self.declare_end("not_ready", absent)

    def declare_end(self, reason: str, silent: list[str]) -> None:
        """The simulator cannot say it."""
        end = EpisodeEnd(run=self.run, tick=max(self.gathering.tick - 1, 0), reason=reason, silent=silent)
        self.send("/episode/end", end)
        self.on_end(end)

    def audit(self, wire: TopicWire) -> None:
        """Look for strangers on a topic of ours, and for readers whose wishes it does not meet."""
        publishers = self.node.get_publishers_info_by_topic(wire.topic)
        for info in publishers:
            if info.node_name not in wire.publishers:
                self.complain("foreign publisher", f"{wire.topic}: {info.node_name} publishes too")
        offered = next((info.qos_profile for info in publishers if info.node_name in wire.publishers), None)
        for info in self.node.get_subscriptions_info_by_topic(wire.topic) if offered is not None else ():
            fit, why = qos_check_compatible(offered, info.qos_profile)
            if fit == QoSCompatibility.ERROR:
                self.complain("wrong QoS", f"{wire.topic}: {info.node_name} hears nothing ({why.strip(' ;')})")

    def conclude_when_told(self) -> None:
        """Make the record once referee and recorder have said their last word, or cannot any more."""
        if self.ended is None or self.record is not None:
            return
        told = {"referee", "recorder", *(["sim"] if piloted(self.episode.tier) else [])}
        waiting = told - self.results.keys() - set(self.ended.silent)
        patience_s = COLLECT_SPOILT_S if self.ended.silent else COLLECT_S
        if self.started_s is None:
            patience_s = 0.0
        if waiting and time.monotonic() - self.ended_s < patience_s:
            return
        self.record = self.make_record(self.ended)
        if self.values["record_file"]:
            write_record(self.record, self.values["record_file"])
        self.finish()

    def make_record(self, end: EpisodeEnd) -> Record:
        result = self.results.get("referee")
        reason = end.reason or ("" if result is not None else "no_result")
        if result is None:
            result = invalid_record(self.episode, reason).result
        now, started_s = time.monotonic(), self.started_s or self.ended_s
        wall_s = now - started_s
        problems = {**self.diagnosed, self.name: self.problems()}
        run = {
            "version": __version__,
            "rtf": round(result["flight_time_s"] / wall_s, 2) if wall_s > 0.0 else None,
            "wall_s": round(wall_s, 4),
            "setup_s": round(started_s - self.born_s, 4),
            **{"bag": None, "bag_bytes": None, "bag_messages": None},
            **self.results.get("recorder", {}),
            **self.results.get("csi", {}),
            **self.results.get("sim", {}),
            "silent": list(end.silent),
            "diagnostics": {node: told for node, told in sorted(problems.items()) if told},
        }
        return Record(result, run)


def write_record(record: Record, file: str) -> None:
    """One JSON line in a file, whole or not at all."""
    partial = Path(f"{file}.partial")
    partial.write_text(json.dumps(record.as_dict()) + "\n", encoding="utf-8")
    partial.replace(file)
