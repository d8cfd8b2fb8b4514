"""The world as a node: moves it by a tick when every other node has done the one before.

What it moves is the embedded simulator, or real autopilots behind MAVLink; then this node is the bridge to them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from sar_msgs.msg import EpisodeEnd, Orders, Ready, SwarmTick, Tick, TickDone

from sar_eval.backends.backend import Backend, SimTick, SpoiltError
from sar_eval.backends.registry import backend_of
from sar_eval.bag.encoders import Encoder
from sar_eval.bag.tick import STATUS_TICKS
from sar_eval.episode.lockstep import Gathering
from sar_eval.ros.codec import counts, estimates_message, read_commands, truth_message
from sar_eval.ros.nodetable import ANSWERING, culprits
from sar_eval.ros.shell import Shell
from sar_eval.ros.transforms import Transforms
from sar_sim.vehicle.fleet import stamp_ns

DECIDING = ("swarm/tick", "manager/orders")
"""What moves the world; the answers only let the next tick begin."""


class SimNode(Shell):
    """Publishes time, truth and estimates; the barrier of every tick is here."""

    def __init__(self, given: Mapping[str, Any] | None = None, context: Any = None) -> None:
        super().__init__("sim", given, context)
        self.held = ExitStack()
        self.spoilt: SpoiltError | None = None
        self.simulator: Backend | None = self.open()
        self.encoder = Encoder(self.episode)
        self.transforms = Transforms(self.node)
        self.barrier = Gathering([*DECIDING, *ANSWERING])
        self.barrier.put("recorder", 0)
        self.decisions = Gathering(DECIDING)
        self.coming: SimTick | None = None
        self.digests: list[int] = []
        self.shown = 0
        self.started_s: float | None = None
        self.progress_s = 0.0
        self.over = False
        self.connect(
            {
                "/episode/ready": self.on_partner,
                "/episode/tick_done": self.on_done,
                "/episode/orders": self.on_orders,
                "/swarm/tick": self.on_swarm,
                "/episode/end": self.on_end,
            }
        )

    def open(self) -> Backend | None:
        """What the episode flies in; a world that does not come to life ends it as soon as there is someone to tell."""
        try:
            return self.held.enter_context(backend_of(self.episode, self.values["sim_speed"]))
        except SpoiltError as error:
            self.spoilt = error
            return None

    def destroy(self) -> None:
        self.held.close()
        super().destroy()

    def on_partner(self, message: Ready) -> None:
        """The manager is ready last: then all are."""
        if self.ours("/episode/ready", message) and message.node == "manager" and self.started_s is None:
            self.started_s = self.progress_s = time.monotonic()
            self.activate()
            if self.simulator is not None:
                try:
                    self.publish(self.simulator.first())
                except SpoiltError as error:
                    self.spoilt = error
                self.progress_s = time.monotonic()
            self.end_if_spoilt()

    def end_if_spoilt(self) -> None:
        if self.spoilt is not None and not self.over:
            self.complain(self.spoilt.reason, self.spoilt.detail)
            self.end(self.spoilt.reason, [])

    def on_orders(self, message: Orders) -> None:
        if self.ours("/episode/orders", message):
            self.gather("manager/orders", message.tick, message)

    def on_swarm(self, message: SwarmTick) -> None:
        if self.ours("/swarm/tick", message):
            self.gather("swarm/tick", message.tick, message)

    def on_done(self, message: TickDone) -> None:
        """The recorder closes a tick when the next has begun, so its answers count for that."""
        if self.ours("/episode/tick_done", message):
            self.gather(message.node, message.tick + (message.node == "recorder"), message)

    def gather(self, part: str, tick: int, message: Any) -> None:
        if self.over or not self.gathered(self.barrier, part, tick, message):
            return
        if part in DECIDING:
            self.decisions.put(part, tick, message)
            self.foresee()
            if self.over:
                return
        parts = self.barrier.take()
        if parts is not None:
            self.progress_s = time.monotonic()
            self.close_tick(parts)

    def foresee(self) -> None:
        """What the swarm decided is known: move the world while the others still work on this tick."""
        parts = self.decisions.take()
        if parts is not None and self.simulator is not None:
            commands = read_commands(parts["swarm/tick"])
            try:
                self.coming = self.simulator.step(commands, parts["manager/orders"].search_begin_s)
            except SpoiltError as error:
                self.spoilt = error
                self.end_if_spoilt()

    def close_tick(self, parts: dict[str, Any]) -> None:
        """Everyone has done the tick: end the episode, or show where the world has moved."""
        answers = [parts[name] for name in ANSWERING if name != "recorder"]
        self.digests += [key for answer in answers for key in answer.digests]
        verdict = next((answer.verdict for answer in answers if answer.verdict), "")
        if verdict:
            self.end("" if verdict == "done" else verdict, [])
            return
        assert self.coming is not None
        self.pace(self.coming)
        self.publish(self.coming)

    def publish(self, now: SimTick) -> None:
        """What others wait for comes first."""
        assert self.simulator is not None
        air = self.simulator.air
        delivery = air.take_delivery() if now.tick % STATUS_TICKS == 0 else None
        self.send("/sim/truth", truth_message(self.run, now))
        self.send("/sim/estimates", estimates_message(self.run, now, delivery))
        self.send("/episode/tick", Tick(run=self.run, tick=now.tick, digests=counts(self.digests)))
        stamps = np.array([stamp_ns(now.tick)])
        for topic, rows in (self.encoder.clock(stamps), *self.encoder.world(stamps, [now.state])):
            self.keep(topic, rows.tobytes())
        self.digests = self.take_digests()
        self.transforms.send(now.tick, now.state)
        self.shown = now.tick

    def pace(self, coming: SimTick) -> None:
        """Keep to the speed that was asked for."""
        factor = self.values["speed_factor"]
        if factor > 0.0 and self.started_s is not None:
            due_s = self.started_s + coming.time_s / factor
            time.sleep(max(due_s - time.monotonic(), 0.0))

    def housekeeping(self) -> None:
        super().housekeeping()
        waited_s = time.monotonic() - self.progress_s
        if self.started_s is not None and not self.over and waited_s > self.values["lockstep_timeout_s"]:
            silent = culprits(self.barrier.missing)
            for name in silent:
                self.complain("silent node", f"{name} has not answered tick {self.barrier.tick}")
            self.end("lockstep_timeout", silent)

    def end(self, reason: str, silent: list[str]) -> None:
        self.over = True
        facts = {} if self.simulator is None else self.simulator.facts()
        if self.spoilt is not None:
            facts["invalid_detail"] = self.spoilt.detail
        if facts:
            self.tell(facts)
        end = EpisodeEnd(run=self.run, tick=self.shown, reason=reason, silent=silent)
        end.digests = counts(self.digests)
        self.send("/episode/end", end)
