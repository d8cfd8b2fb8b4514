"""The receivers of an episode that Gazebo flies: what the CSI system published, tick by tick."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import Any

import numpy as np
from gz.msgs10.dataframe_pb2 import Dataframe
from gz.transport13 import Node
from numpy.typing import NDArray

from sar_core.errors import ContractError
from sar_eval.backends.backend import SpoiltError
from sar_gazebo.csi import decode, model_name
from sar_gazebo.partition import join
from sar_sim.radio.receiver import Frames
from sar_sim.vehicle.fleet import stamp_ns as stamp_of

SILENCE_S = 2.0
"""Wall time for which a tick's frames may be waited for."""
POLL_S = 0.002


class CsiListener:
    """Listens on Gazebo's side as :class:`sar_sim.radio.receiver.Receiver` does in the embedded simulator."""

    def __init__(self, drones: int) -> None:
        join()
        self._node = Node()
        self._inbox: deque[tuple[int, bytes]] = deque()
        self._heard: list[dict[int, Frames]] = [{} for _ in range(drones)]
        self._topics = [f"/{model_name(drone)}/csi" for drone in range(drones)]
        for drone, topic in enumerate(self._topics):
            self._node.subscribe(Dataframe, topic, partial(_note, self._inbox, drone))

    def close(self) -> None:
        """Listen no more; safe to call again."""
        while self._topics:
            self._node.unsubscribe(self._topics.pop())
        self._inbox.clear()

    def listen(
        self, stamp_ns: int, tick: int, position: NDArray[np.float64], attitude: NDArray[np.float64]
    ) -> list[Frames]:
        """Everyone's frames of a tick; where the drones are, Gazebo knows itself."""
        give_up = time.monotonic() + SILENCE_S
        while not self._complete(tick):
            if time.monotonic() > give_up:
                deaf = ", ".join(model_name(i) for i, heard in enumerate(self._heard) if tick not in heard)
                raise SpoiltError("csi_lost", f"no frames of tick {tick} came for {deaf} within {SILENCE_S:g} s")
            time.sleep(POLL_S)
        frames = [heard[tick] for heard in self._heard]
        self._heard = [{k: f for k, f in heard.items() if k > tick} for heard in self._heard]
        return frames

    def _complete(self, tick: int) -> bool:
        while self._inbox:
            drone, data = self._inbox.popleft()
            try:
                frames, number = decode(data, 0)
            except ContractError as error:
                raise SpoiltError("csi_lost", str(error)) from error
            self._heard[drone][number] = frames._replace(stamp_ns=stamp_of(number))
        return all(tick in heard for heard in self._heard)


def _note(inbox: deque[tuple[int, bytes]], drone: int, message: Any) -> None:
    """From a thread of the transport."""
    inbox.append((drone, bytes(message.data)))
