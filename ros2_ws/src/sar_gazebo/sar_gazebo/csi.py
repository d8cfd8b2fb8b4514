"""CSI for vehicles that Gazebo moves: which episode, when to listen, what is heard, how it travels, how it fares.

Nothing here knows Gazebo. Frames come from the receivers of the embedded simulator, with the same streams: equal poses
and seeds give equal frames in both tiers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from sar_core.errors import ContractError, InputError, RunError
from sar_core.radio import ANTENNAS, SUBCARRIERS
from sar_eval.backends.embedded import make_receiver
from sar_eval.scenario.model import Episode, scenario_from
from sar_eval.scenario.prepare import prepare
from sar_sim.radio.receiver import Frames
from sar_sim.vehicle.fleet import TICKS_PER_SECOND

TIER = "gazebo"
KEYS = ("scenario", "seed", "episode", "config_sha256")
"""What the system reads from its plugin element; :mod:`sar_gazebo.stage` writes it."""
PERIOD_NS = 1_000_000_000 // TICKS_PER_SECOND
HEALTH_NS = 1_000_000_000
BEGIN_TOPIC = "/sar/episode/begin"
"""Where the evaluator says at which simulation time, in nanoseconds, the episode begins; all is silent before."""
HEALTH_TOPIC = "/sar/csi/health"

Pose = tuple[float, float, float, float, float, float, float]
"""x, y, z in metres (ENU) and the body-to-world quaternion w, x, y, z."""

_HEAD = struct.Struct("<4sHHQ")
_MAGIC = b"SCSI"
_VERSION = 1
_FRAME_SHAPE = (ANTENNAS, len(SUBCARRIERS), 2)
_FRAME_BYTES = 8 + 1 + 8 + ANTENNAS * len(SUBCARRIERS) * 2


def model_name(drone: int) -> str:
    """Name of a drone's model and of its topics' namespace; drones are counted from 0, names from 1."""
    return f"uav_{drone + 1}"


def read_episode(value_of: Callable[[str], str]) -> Episode:
    """The episode a staged world asks for; ``value_of`` gives the text of a plugin parameter.

    The hash shows whether this code and its data resolve the episode to what the world was staged for.
    """
    given = {key: value_of(key).strip() for key in KEYS}
    missing = [key for key, text in given.items() if not text]
    if missing:
        raise InputError(f"plugin of sar_gazebo: <{missing[0]}> is missing; needed are {', '.join(KEYS)}")
    try:
        plain = json.loads(given["scenario"])
        seed, index = int(given["seed"]), int(given["episode"])
    except ValueError as error:
        raise InputError(f"plugin of sar_gazebo: scenario must be JSON, seed and episode integers ({error})") from error
    if not isinstance(plain, dict):
        raise InputError(f"plugin of sar_gazebo: scenario is {type(plain).__name__}, allowed is a mapping")
    episode = prepare(scenario_from(plain, "plugin of sar_gazebo"), seed, index, TIER)
    if episode.config_sha256 != given["config_sha256"]:
        raise ContractError(
            f"the world was staged for configuration {given['config_sha256'][:12]}..., this installation makes "
            f"{episode.config_sha256[:12]}... of it: stage it again with the version that flies it"
        )
    return episode


class Cadence:
    """Ticks 1, 2, 3 ... of 20 Hz: each is due at the first step at or after its own time, so the rate never drifts.

    They are counted from the begin of the episode. Ticks that no step served are counted, not made up for.
    """

    def __init__(self, begin_ns: int) -> None:
        self.begin_ns = begin_ns
        self.tick = 0
        self.missed = 0
        self._now_ns = 0

    def due(self, now_ns: int) -> int | None:
        """The tick to serve at this step, or None."""
        if now_ns < self._now_ns:
            raise RunError(f"time ran backwards from {self._now_ns} to {now_ns} ns without a reset of the world")
        self._now_ns = now_ns
        tick = (now_ns - self.begin_ns) // PERIOD_NS
        if tick <= self.tick:
            return None
        self.missed += tick - self.tick - 1
        self.tick = tick
        return tick


class Radio:
    """The receivers of all drones of an episode."""

    def __init__(self, episode: Episode) -> None:
        if episode.radio is None:
            raise InputError("the scenario has radio = null: there is no CSI to make")
        self.drones = episode.scenario.drones
        self._receiver = make_receiver(episode)

    def listen(self, now_ns: int, tick: int, poses: Sequence[Pose]) -> list[Frames]:
        """What each drone receives, from its true pose."""
        table = np.array(poses, dtype=np.float64).reshape(self.drones, 7)
        if not np.isfinite(table).all():
            raise RunError(f"a true pose at {now_ns} ns is not finite")
        return self._receiver.listen(now_ns, tick, table[:, :3], table[:, 3:])


def warm_up(episode: Episode) -> None:
    """Compile what will be called, so that no tick of the simulation waits for it."""
    spawns = episode.spawns
    poses = [(float(x), float(y), float(z) + 1.0, 1.0, 0.0, 0.0, 0.0) for x, y, z, _ in spawns]
    Radio(episode).listen(PERIOD_NS, 1, poses)


def encode(frames: Frames, tick: int) -> bytes:
    """One drone's frames of one tick as little-endian bytes; the stamp travels in the carrier's header."""
    count = len(frames.address)
    head = _HEAD.pack(_MAGIC, _VERSION, count, tick)
    columns = (
        frames.address.astype("<u8"),
        frames.beacon.astype("u1"),
        frames.rssi_dbm.astype("<f8"),
        frames.csi.astype("i1"),
    )
    return head + b"".join(column.tobytes() for column in columns)


def decode(data: bytes, stamp_ns: int) -> tuple[Frames, int]:
    """Frames and tick of :func:`encode`'s bytes."""
    if len(data) < _HEAD.size:
        raise ContractError(f"a CSI payload has {len(data)} bytes, its head alone takes {_HEAD.size}")
    magic, version, count, tick = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise ContractError(f"a CSI payload begins with {magic!r} version {version}, allowed is {_MAGIC!r} {_VERSION}")
    expected = _HEAD.size + count * _FRAME_BYTES
    if len(data) != expected:
        raise ContractError(f"a CSI payload of {count} frames has {len(data)} bytes, allowed is {expected}")
    at = _HEAD.size
    address = np.frombuffer(data, "<u8", count, at).astype(np.uint64)
    at += 8 * count
    beacon = np.frombuffer(data, "u1", count, at).astype(np.bool_)
    at += count
    rssi = np.frombuffer(data, "<f8", count, at).astype(np.float64)
    at += 8 * count
    csi = np.frombuffer(data, "i1", offset=at).reshape(count, *_FRAME_SHAPE).copy()
    return Frames(stamp_ns, address, beacon, rssi, csi), tick


@dataclass
class CsiHealth:
    """What became of the system so far. Gazebo goes on without a system that failed, so it must tell on itself."""

    configured: bool = False
    begin_ns: int | None = None
    ticks: int = 0
    frames: int = 0
    missed: int = 0
    errors: int = 0
    resets: int = 0
    last_error: str = ""
    _told_ns: int = field(default=-HEALTH_NS, repr=False)

    def fail(self, error: Exception) -> None:
        self.errors += 1
        self.last_error = f"{type(error).__name__}: {' '.join(str(error).split())}"

    def due(self, now_ns: int) -> bool:
        """Once a simulated second, counted from the last time it was told; a clock set back is told at once."""
        if 0 <= now_ns - self._told_ns < HEALTH_NS:
            return False
        self._told_ns = now_ns
        return True

    def text(self) -> str:
        """For machines: one JSON object on one line."""
        return json.dumps({key: value for key, value in asdict(self).items() if not key.startswith("_")})
