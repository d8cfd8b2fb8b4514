"""The referee as a node: from the truth and what the drones report to events, the score and the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sar_msgs.msg import EpisodeEnd, Orders, SimTruth, SwarmTick

from sar_eval.bag.encoders import REPORT_TICKS, STATUS_DONE, Encoder
from sar_eval.bag.tick import STATUS_TICKS
from sar_eval.episode.invalid import invalid_record
from sar_eval.episode.lockstep import Gathering
from sar_eval.episode.outcome import result_of
from sar_eval.episode.score import Score
from sar_eval.episode.sensing import Tally
from sar_eval.ros.codec import (
    read_beliefs,
    read_commands,
    read_heard,
    read_orders,
    read_reports,
    read_statuses,
    read_tally,
    read_truth,
)
from sar_eval.ros.markers import markers_of
from sar_eval.ros.shell import Shell
from sar_sim.judging.scoring import Judged
from sar_sim.vehicle.fleet import stamp_ns


class RefereeNode(Shell):
    """Judges every tick once the world has moved and the swarm has decided."""

    def __init__(self, given: Mapping[str, Any] | None = None, context: Any = None) -> None:
        super().__init__("referee", given, context)
        self.encoder = Encoder(self.episode)
        self.score: Score | None = None
        self.tally: Tally | None = None
        self.told = False
        self.gathering = Gathering(["truth", "orders", "swarm"])
        self.connect(
            {
                "/sim/truth": self.on_truth,
                "/episode/orders": self.on_orders,
                "/swarm/tick": self.on_swarm,
                "/episode/end": self.on_end,
            }
        )

    def on_truth(self, message: SimTruth) -> None:
        if self.ours("/sim/truth", message):
            self.gather("truth", message)

    def on_orders(self, message: Orders) -> None:
        if self.ours("/episode/orders", message):
            self.gather("orders", message)

    def on_swarm(self, message: SwarmTick) -> None:
        if self.ours("/swarm/tick", message):
            self.gather("swarm", message)

    def gather(self, part: str, message: Any) -> None:
        if not self.gathered(self.gathering, part, message.tick, message):
            return
        parts = self.gathering.take()
        if parts is not None:
            self.step(parts["truth"], parts["orders"], parts["swarm"])

    def step(self, truth: SimTruth, orders: Orders, swarm: SwarmTick) -> None:
        now, statuses, stamp = read_truth(truth), read_statuses(swarm), stamp_ns(truth.tick)
        self.tally = read_tally(swarm)
        if self.score is None:
            self.score = score = Score(self.episode, now, statuses)
        else:
            score = self.score
            events, verdicts = score.observe(now), list[Judged]()
            if not score.orders.invalid_reason:
                verdicts = score.note(read_orders(orders), statuses, read_reports(swarm), read_heard(swarm))
                score.follow(read_commands(swarm), read_beliefs(swarm))
            for event in events:
                self.keep(*self.encoder.event(stamp, event))
            for judged in verdicts:
                self.keep(*self.encoder.report_event(stamp, judged))
        if score.done:
            self.conclude(score)
            self.answer(score.tick, score.orders.invalid_reason or "done")
            return
        if score.tick % REPORT_TICKS == 0 and score.tick > 0:
            self.report(score)
        if score.tick % STATUS_TICKS == 0:
            self.send("/episode/markers", markers_of(self.episode, score))
        self.answer(score.tick)

    def report(self, score: Score, phase: int | None = None) -> None:
        stamp = stamp_ns(score.tick)
        self.keep(*self.encoder.status(stamp, score.status(phase)))
        self.keep(*self.encoder.coverage(stamp, score.scanned, score.coverage.config.cell_m))

    def conclude(self, score: Score) -> None:
        """Close what is still open and tell what the episode came to."""
        self.told = True
        for event in score.referee.finish(score.time_s):
            self.keep(*self.encoder.event(stamp_ns(score.tick), event))
        self.report(score, STATUS_DONE)
        self.tell(result_of(score, self.tally))

    def on_end(self, message: EpisodeEnd) -> None:
        """An end that the referee did not call spoils the episode; what it has seen until then is the result."""
        if not self.ours("/episode/end", message):
            return
        if self.score is None:
            self.tell(invalid_record(self.episode, message.reason).result)
        elif not self.told:
            self.score.spoil(message.reason)
            self.conclude(self.score)
        self.finish()
