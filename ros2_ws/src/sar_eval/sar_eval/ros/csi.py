"""The radio bridge as a node: from true poses to the frames each drone's receivers hand over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sar_msgs.msg import SimTruth

from sar_eval.backends.backend import SpoiltError, time_of
from sar_eval.backends.registry import receiver_of
from sar_eval.bag.encoders import REPORT_TICKS, Encoder
from sar_eval.episode.lockstep import Gathering
from sar_eval.ros.codec import frames_message, read_truth
from sar_eval.ros.shell import Shell
from sar_sim.radio.receiver import Frames, silence
from sar_sim.vehicle.fleet import stamp_ns


class CsiNode(Shell):
    """Hears for every drone; knows where the transmitters truly are."""

    def __init__(self, given: Mapping[str, Any] | None = None, context: Any = None) -> None:
        super().__init__("csi", given, context)
        self.receiver = receiver_of(self.episode)
        self.encoder = Encoder(self.episode)
        self.gathering = Gathering(["truth"])
        self.connect({"/sim/truth": self.on_truth, "/episode/end": self.on_end})

    def on_truth(self, message: SimTruth) -> None:
        if self.ours("/sim/truth", message) and self.gathered(self.gathering, "truth", message.tick, message):
            self.gathering.take()
            self.step(message)

    def destroy(self) -> None:
        if self.receiver is not None:
            self.receiver.close()
        super().destroy()

    def step(self, message: SimTruth) -> None:
        tick, stamp = message.tick, stamp_ns(message.tick)
        frames: list[Frames] = []
        verdict = ""
        if self.receiver is not None and tick > 0:
            state = read_truth(message).state
            try:
                frames = self.receiver.listen(stamp, tick, state.position, state.attitude)
            except SpoiltError as error:
                self.complain(error.reason, error.detail)
                self.tell({"invalid_detail": error.detail})
                frames, verdict = [silence(stamp)] * self.episode.scenario.drones, error.reason
        self.send("/csi/frames", frames_message(self.run, tick, frames))
        if self.receiver is not None and tick % REPORT_TICKS == 0:
            self.keep(*self.encoder.devices(stamp, time_of(tick)))
        if self.values["record_csi"]:
            for letter in self.encoder.frames(stamp, frames):
                self.keep(*letter)
        self.answer(tick, verdict)
