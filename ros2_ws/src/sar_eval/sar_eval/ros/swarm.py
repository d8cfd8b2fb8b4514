"""The swarm controllers as a node: estimates, frames and what the air delivered in, setpoints and reports out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sar_msgs.msg import CsiFrames, Orders, SimEstimates

from sar_eval.backends.backend import time_of
from sar_eval.bag.encoders import Encoder, health_of
from sar_eval.bag.tick import STATUS_TICKS
from sar_eval.episode.briefing import briefing_of
from sar_eval.episode.lockstep import Gathering
from sar_eval.episode.swarm import Swarm, SwarmTick
from sar_eval.ros.codec import read_delivery, read_estimates, read_frames, swarm_message
from sar_eval.ros.shell import Shell
from sar_sim.vehicle.fleet import stamp_ns
from sar_swarm.piloting.controller import Order


class SwarmNode(Shell):
    """Steps every drone's controller once per tick. Subscribes to no truth."""

    def __init__(self, given: Mapping[str, Any] | None = None, context: Any = None) -> None:
        super().__init__("swarm", given, context)
        self.swarm = Swarm(briefing_of(self.episode))
        self.encoder = Encoder(self.episode)
        self.gathering = Gathering(["estimates", "frames", "orders"])
        self.connect(
            {
                "/sim/estimates": self.on_estimates,
                "/csi/frames": self.on_frames,
                "/episode/orders": self.on_orders,
                "/episode/end": self.on_end,
            }
        )

    def on_estimates(self, message: SimEstimates) -> None:
        if self.ours("/sim/estimates", message):
            self.gather("estimates", message)

    def on_frames(self, message: CsiFrames) -> None:
        if self.ours("/csi/frames", message):
            self.gather("frames", message)

    def on_orders(self, message: Orders) -> None:
        if self.ours("/episode/orders", message):
            self.gather("orders", message)

    def gather(self, part: str, message: Any) -> None:
        if not self.gathered(self.gathering, part, message.tick, message):
            return
        parts = self.gathering.take()
        if parts is not None:
            self.step(parts["estimates"], parts["frames"], parts["orders"])

    def step(self, estimates: SimEstimates, frames: CsiFrames, orders: Orders) -> None:
        tick = estimates.tick
        told, delivered = read_estimates(estimates)
        if tick == 0:
            made = self.swarm.begin(told)
        else:
            order = Order(orders.order)
            made = self.swarm.step(tick, time_of(tick), told, read_frames(frames), delivered, order)
        tally = None if self.swarm.sensing is None else self.swarm.sensing.tally()
        self.send("/swarm/tick", swarm_message(self.run, tick, made, tally))
        self.record(tick, made)
        if tick % STATUS_TICKS == 0:
            age = self.swarm.boxes.oldest_news_s(time_of(tick))
            delivery, worst = read_delivery(estimates), self.swarm.worst()
            health = health_of(stamp_ns(tick), made.statuses, made.commands, told.charge, delivery, age, worst)
            for topic, rows in self.encoder.health([health]):
                self.keep(topic, rows.tobytes())
        self.answer(tick)

    def record(self, tick: int, made: SwarmTick) -> None:
        stamp = stamp_ns(tick)
        for topic, rows in self.encoder.setpoints(np.array([stamp]), [made.commands]):
            self.keep(topic, rows.tobytes())
        for letter in self.encoder.observations(stamp, made.heard):
            self.keep(*letter)
        for found in made.reports:
            self.keep(*self.encoder.victim_report(stamp, found))
