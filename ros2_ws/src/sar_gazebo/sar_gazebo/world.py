"""PX4 vehicles in Gazebo as the world of an episode.

Everything is as with PX4's own simulator but the truth: that is Gazebo's own poses with Gazebo's own stamps. What a
vehicle says of its truth went through latitude and longitude on a sphere, and is 0.3 % off in the east.
"""

from __future__ import annotations

import math
from typing import Any

from sar_eval.backends.backend import Receiving, SpoiltError, Stop, never
from sar_eval.px4.launcher import Launcher
from sar_eval.px4.world import Floats, Px4World, quantiles
from sar_eval.scenario.model import Episode
from sar_gazebo.csilistener import CsiListener
from sar_gazebo.truthlistener import SECOND_NS, TruthListener, next_begin_ns

BEGIN_AHEAD_S = 1.0
"""Simulated time between the announcement of an episode's begin and the begin."""
CLOCKS_APART_S = 0.1
"""By which vehicle 1's clock may differ from Gazebo's when the episode begins, at real time."""


class GazeboWorld(Px4World):
    """N vehicles of one Gazebo, which ``gazebo_process`` starts and ``truth_listener`` watches."""

    def __init__(
        self,
        episode: Episode,
        gazebo_process: Launcher,
        truth_listener: TruthListener,
        speed: float = 1.0,
        stop: Stop = never,
    ) -> None:
        super().__init__(episode, gazebo_process, speed, stop)
        self.truth_listener = truth_listener
        self.clock_apart_s = math.nan
        self.truth_apart: list[float] = []
        self._csi_listener: CsiListener | None = None
        self._posed = (-math.inf, -math.inf)

    def receiver(self) -> Receiving:
        """What the CSI system publishes, from now on."""
        self._csi_listener = self._csi_listener or CsiListener(self.episode.scenario.drones)
        return self._csi_listener

    def pump(self) -> float:
        self.truth_listener.look()
        now = super().pump()
        if self.truth_listener.now_s > self._posed[1]:
            self._posed = now, self.truth_listener.now_s
        silent_s = now - self._posed[0]
        if self.truth_listener.watching and silent_s > self.limits.gap_s:
            raise SpoiltError("sensor_gap", f"Gazebo has sent no poses of all drones for {silent_s:.1f} s")
        return now

    def begin(self) -> float:
        """Gazebo's next round moment, once the CSI system has said that it counts from there."""
        self.pump()
        if not math.isfinite(self.truth_listener.now_s):
            raise SpoiltError("not_ready", "Gazebo sent no poses of all drones")
        reading_s = self.vehicles[0].told.clock.reading_s
        self.clock_apart_s = reading_s - self.truth_listener.now_s
        if abs(self.clock_apart_s) > CLOCKS_APART_S * max(self.speed, 1.0):
            apart = f"vehicle 1's clock reads {reading_s:.3f} s, Gazebo's {self.truth_listener.now_s:.3f} s"
            raise SpoiltError("clock_skew", f"{apart}: PX4 must follow Gazebo's clock")
        self.truth_listener.watching = True
        begin_ns = next_begin_ns(reading_s, BEGIN_AHEAD_S)
        while self.truth_listener.health.get("begin_ns") != begin_ns:
            self.truth_listener.begin(begin_ns)
            self.stand()
            if self.truth_listener.now_s * SECOND_NS >= begin_ns:
                raise SpoiltError("csi_lost", f"the CSI system did not take up the begin within {BEGIN_AHEAD_S:g} s")
        return begin_ns / SECOND_NS

    def behind(self, time_s: float) -> bool:
        return super().behind(time_s) or self.truth_listener.now_s < self.zero_s + time_s

    def truth(self, time_s: float) -> Floats:
        told = super().truth(time_s)
        truth = self.truth_listener.truth(self.zero_s + time_s)
        self.truth_apart.append(float(abs(told[:, :3] - truth[:, :3]).max()))
        return truth

    def facts(self) -> dict[str, Any]:
        told = super().facts()
        if not told or not self.zero_s:
            return told
        touches = [
            {
                "drone": touch.drone + 1,
                "with": touch.obstacle or f"drone {touch.other + 1}",
                "begin_s": round(touch.begin_ns / SECOND_NS - self.zero_s, 3),
                "end_s": round(touch.end_ns / SECOND_NS - self.zero_s, 3),
                "depth_m": round(touch.depth_m, 4),
            }
            for touch in self.truth_listener.touches()
        ]
        return {
            **told,
            "gazebo": {
                "clock_apart_s": round(self.clock_apart_s, 4),
                "px4_truth_apart_m": quantiles(self.truth_apart),
                "poses_dropped": self.truth_listener.dropped,
                "csi": self.truth_listener.health,
                "touches": touches,
            },
        }

    def close(self) -> None:
        super().close()
        self.truth_listener.close()
        if self._csi_listener is not None:
            self._csi_listener.close()
