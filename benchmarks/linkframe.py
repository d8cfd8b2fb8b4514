"""One heard frame of CSI: paths, channel, impairments, quantisation; the peer is the same in plain numpy."""

from __future__ import annotations

import time

import numpy as np

from sar_core.radio import array_axis
from sar_sim.radio.channel import direct_channel
from sar_sim.radio.devices import Device, DeviceKind
from sar_sim.radio.radioconfig import RadioConfig
from sar_sim.radio.receiver import THERMAL, Receiver, direct_frame
from sar_sim.world.world import World


def link_frame_s(world: World, config: RadioConfig, ticks: int = 1000) -> tuple[float, float]:
    """CPU seconds per heard frame, ours with everything around it and plain numpy's channel and impairments alone.

    Four drones fly past four devices that send at every tick.
    """
    places = ((-60.0, -40.0), (-20.0, 30.0), (30.0, -10.0), (70.0, 50.0))
    tracks = [np.array([[0.0, x, y, 0.5]]) for x, y in places]
    devices = [Device(j, DeviceKind.ACCESS_POINT, track, beacon=True) for j, track in enumerate(tracks)]
    receiver = Receiver(config, world, devices, 4, 0, 0, 0.05, 8.0)
    positions = np.array([[-75.0, 0.0, 30.0], [-25.0, 0.0, 30.0], [25.0, 0.0, 30.0], [75.0, 0.0, 30.0]])
    attitudes = np.tile([1.0, 0.0, 0.0, 0.0], (4, 1))
    receiver.listen(0, 0, positions, attitudes)
    heard = 0
    began = time.process_time()
    for tick in range(1, ticks + 1):
        positions[:, 1] = 0.4 * tick % 100.0
        heard += sum(len(f.address) for f in receiver.listen(tick * 50_000_000, tick, positions, attitudes))
    ours = (time.process_time() - began) / max(heard, 1)
    rng = np.random.default_rng(0)
    peers = min(heard, max(ticks // 4, 1))
    axis = array_axis(1.0, 0.0, 0.0, 0.0)
    began = time.process_time()
    for k in range(peers):
        i, j = k % 4, k // 4 % 4
        place, count = receiver._links.device[j, :3], int(receiver._links.counts[i, j])
        channel = direct_channel(receiver._links.paths[i, j], count, place, positions[i], axis, 1.0, rng.random(), 1e-8)
        normals = rng.standard_normal(THERMAL + THERMAL // 2)
        direct_frame(channel, normals, 1e-12, 0.05, rng.vonmises(0.0, 8.0), rng.random(), receiver._budget)
    return ours, (time.process_time() - began) / max(peers, 1)
