"""The recorder as a node: raw messages of every recorded topic into one bag, tick by tick and nothing else."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sar_msgs.msg import EpisodeEnd, Tick

from sar_core.errors import SarError
from sar_eval.bag.encoders import REPORT_TICKS, Encoder
from sar_eval.bag.logbook import make_writer
from sar_eval.bag.writer import BagWriter
from sar_eval.episode.lockstep import Gathering, TickBook
from sar_eval.ros.shell import Shell
from sar_sim.vehicle.fleet import stamp_ns

STATUS_TOPIC = "/episode/status"
LAST_TICK_S = 2.0
"""Wall time for the last tick's messages to come in."""


class RecorderNode(Shell):
    """Closes a tick when the next begins, and answers it when all that its senders announced is there."""

    def __init__(self, given: Mapping[str, Any] | None = None, context: Any = None) -> None:
        super().__init__("recorder", given, context)
        self.book = TickBook()
        self.gathering = Gathering(["tick"])
        self.encoder = Encoder(self.episode)
        self.closing = 0
        self.wrote = False
        self.last_status: bytes | None = None
        self.ended: EpisodeEnd | None = None
        self.give_up_s = 0.0
        bag = self.values["bag"]
        csi = self.values["record_csi"]
        self.writer: BagWriter | None = make_writer(self.episode, Path(bag), csi) if bag else None
        recorded = {topic: functools.partial(self.on_message, topic) for topic, w in self.wires.items() if w.recorded}
        self.connect({"/episode/tick": self.on_tick, "/episode/end": self.on_end, **recorded})

    def on_message(self, topic: str, payload: bytes) -> None:
        self.book.take(topic, payload)
        self.advance()

    def on_tick(self, message: Tick) -> None:
        if not self.ours("/episode/tick", message):
            return
        if self.gathered(self.gathering, "tick", message.tick, message):
            self.gathering.take()
            if message.tick > 0:
                self.book.announce(stamp_ns(message.tick - 1), message.digests)
                self.advance()

    def advance(self) -> None:
        """Write every tick that is whole."""
        while (closed := self.book.close()) is not None:
            stamp, messages = closed
            if self.writer is not None:
                if self.closing % REPORT_TICKS == 1:
                    self.writer.flush()
                for topic, payload in messages:
                    self.writer.write(topic, stamp, payload)
                    self.wrote = True
                    if topic == STATUS_TOPIC:
                        self.last_status = payload
            self.answer(self.closing)
            self.closing += 1
            if self.ended is not None and self.closing > self.ended.tick:
                self.conclude()
        self.report_strangers()

    def report_strangers(self) -> None:
        for topic in self.book.foreign:
            self.complain("foreign message", f"{topic}: a message that no node of this run announced")
        for topic in self.book.late:
            self.complain("time ran backwards", f"{topic}: a stamp of a tick that is closed")
        self.book.foreign.clear()
        self.book.late.clear()

    def on_end(self, message: EpisodeEnd) -> None:
        if not self.ours("/episode/end", message) or self.ended is not None:
            return
        self.ended = message
        if message.silent:
            self.spoil(message.reason)
            self.conclude()
            return
        self.give_up_s = time.monotonic() + LAST_TICK_S
        self.book.announce(stamp_ns(message.tick), message.digests)
        self.advance()

    def housekeeping(self) -> None:
        super().housekeeping()
        if self.ended is not None and not self.finished and time.monotonic() > self.give_up_s:
            self.complain("incomplete", f"tick {self.closing} never became whole; the bag ends before it")
            self.spoil("recording_incomplete")
            self.conclude()

    def spoil(self, reason: str) -> None:
        """Say in the bag itself that its episode is INVALID; the tick written last is not on the disk yet."""
        if self.writer is not None and self.wrote:
            stamp = stamp_ns(self.closing - 1)
            topic, payload = self.encoder.last_status(stamp, self.last_status, reason)
            self.writer.write(topic, stamp, payload)

    def conclude(self) -> None:
        """Finish the bag and say what it holds; one that got nothing is not left behind."""
        if self.finished:
            return
        outcome: dict[str, Any] = {"bag": None, "bag_bytes": None, "bag_messages": None}
        writer, self.writer = self.writer, None
        if writer is not None and not self.wrote:
            writer.discard()
        elif writer is not None:
            try:
                done = writer.close()
                outcome = {"bag": str(done.path), "bag_bytes": done.size_bytes, "bag_messages": done.messages}
            except SarError as error:
                outcome["bag_error"] = str(error)
        self.tell(outcome)
        super().finish()

    def destroy(self) -> None:
        """Stopped before it could listen, it has written nothing yet and leaves nothing."""
        if self.writer is not None and not self.wrote:
            self.writer.discard()
        super().destroy()

    def finish(self) -> None:
        """Asked to stop without an end of the episode: what is written so far is kept, and says so."""
        if self.ended is None:
            self.spoil("interrupted")
        self.conclude()
