"""What Gazebo tells an evaluator while it flies: true poses, touches, how the CSI system fares.

Gazebo calls back from threads of its own; they only put what comes into an inbox, and whoever asks takes it in.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gz.msgs10.contacts_pb2 import Contacts
from gz.msgs10.pose_v_pb2 import Pose_V
from gz.msgs10.stringmsg_pb2 import StringMsg
from gz.transport13 import Node
from numpy.typing import NDArray

from sar_core.errors import RunError
from sar_eval.backends.backend import SpoiltError
from sar_eval.px4.telemetry import KEPT_S, Series
from sar_gazebo.csi import BEGIN_TOPIC, HEALTH_TOPIC, model_name
from sar_gazebo.partition import join
from sar_gazebo.stage import CONTACT_TOPIC
from sar_gazebo.touch import Touch, Touches
from sar_gazebo.truth import Assembly, PosedTruth, hull_pose
from sar_sim.judging.referee import EventPhase

Floats = NDArray[np.float64]
SECOND_NS = 1_000_000_000
POSES_APART_S = 0.1
"""Simulated time between poses of all drones beyond which the way in between is not known; they come every 20 ms."""


class TruthListener:
    """Listens from its making on; ``look`` takes in what has come. ``speed`` is simulated over wall time."""

    def __init__(self, drones: int, obstacles: tuple[str, ...], speed: float = 1.0) -> None:
        join()
        self.health: dict[str, Any] = {}
        self.watching = False
        """From the begin on: a gap in the poses spoils the flight."""
        self._ended: list[Touch] = []
        self._drones = drones
        self._inbox: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._assembly = Assembly(drones)
        self._contacts = Touches(obstacles)
        self._truth = Series(KEPT_S * max(speed, 1.0))
        self._node = Node()
        self._topics: list[str] = []
        self._begin = self._node.advertise(BEGIN_TOPIC, StringMsg)
        self._listen(StringMsg, HEALTH_TOPIC, self._take_health)
        self._listen(Contacts, CONTACT_TOPIC, self._take_contacts)
        for drone in range(drones):
            self._listen(Pose_V, f"/model/{model_name(drone)}/pose", partial(self._take_poses, drone))

    def _listen(self, kind: Any, topic: str, take: Callable[[Any], None]) -> None:
        inbox = self._inbox
        self._node.subscribe(kind, topic, lambda message: inbox.append((take, message)))
        self._topics.append(topic)

    def close(self) -> None:
        """Listen no more; safe to call again."""
        while self._topics:
            self._node.unsubscribe(self._topics.pop())
        self._inbox.clear()

    def look(self) -> None:
        """May raise SpoiltError."""
        while self._inbox:
            take, message = self._inbox.popleft()
            try:
                take(message)
            except SpoiltError:
                raise
            except (ArithmeticError, LookupError, ValueError, RunError) as error:
                raise SpoiltError("sensor_gap", f"a message of Gazebo cannot be read: {error}") from error

    @property
    def now_s(self) -> float:
        """Gazebo's time of the newest poses of all drones."""
        return self._truth.last_s

    @property
    def dropped(self) -> int:
        """Poses that never became part of a whole."""
        return self._assembly.dropped

    def truth(self, time_s: float) -> Floats:
        """Everyone's true state [N, 13] at a moment of Gazebo's time: position, velocity, attitude, body rates."""
        return self._truth.at(time_s).reshape(self._drones, 13)

    def begin(self, time_ns: int) -> None:
        """Tell the CSI system when the episode begins; to be said again until its health shows it."""
        self._begin.publish(StringMsg(data=str(time_ns)))

    def touches(self) -> list[Touch]:
        """Every touch so far, those that go on ended."""
        self._ended += self._contacts.finish()
        return self._ended

    def _take_health(self, message: Any) -> None:
        self.health = json.loads(message.data)

    def _take_contacts(self, message: Any) -> None:
        self._end(self._contacts.observe(_stamp_ns(message), message.contact))

    def _take_poses(self, drone: int, message: Any) -> None:
        truth = self._assembly.add(_stamp_ns(message.pose[0]), drone, hull_pose(model_name(drone), message.pose))
        if truth is None:
            return
        time_s = truth.stamp_ns / SECOND_NS
        if self.watching and time_s - self.now_s > POSES_APART_S:
            raise SpoiltError("sensor_gap", f"Gazebo sent no poses of all drones for {time_s - self.now_s:.2f} s")
        self._truth.add(time_s, self._row(truth))
        self._end(self._contacts.settle(truth.stamp_ns))

    def _end(self, touches: list[Touch]) -> None:
        self._ended += [touch for touch in touches if touch.phase is EventPhase.END]

    def _row(self, truth: PosedTruth) -> Floats:
        """All drones in one row; of the two quaternions of an attitude the one that is next to the last."""
        attitude = truth.attitude.copy()
        if self._truth.rows:
            last = self._truth.rows[-1].reshape(self._drones, 13)[:, 6:10]
            attitude[np.sum(attitude * last, axis=1) < 0.0] *= -1.0
        return np.concatenate([truth.position, truth.velocity, attitude, truth.rates], axis=1).reshape(-1)


def next_begin_ns(now_s: float, ahead_s: float) -> int:
    """A moment at least so far ahead that is a whole tick and a whole step of the physics."""
    return math.ceil((now_s + ahead_s) * 10.0) * (SECOND_NS // 10)


def _stamp_ns(message: Any) -> int:
    return int(message.header.stamp.sec) * SECOND_NS + int(message.header.stamp.nsec)
