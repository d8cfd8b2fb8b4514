"""A learned policy's door: 64 observations in, 4 actions out, and an actor read from a small weights file.

Layout, scales and action limits are those of ADR-148's reference code (ruvnet/ruv-drone, src/marl). Where it leaves
something open, this is what holds here: the frame is ENU with heading counter-clockwise from east, neighbours are
offsets, nearest first, absent ones are zeros.

    0-8    position / (1000, 1000, 100) m, velocity / (20, 20, 5) m/s, heading / pi, charge 0-1, link 0-1
    9-26   six nearest neighbours: offset / (100, 100, 10) m
    27-51  5 x 5 tile of victim probabilities, 5 m cells around the drone, rows from south to north, each west to east
    52-56  the surest hypothesis: probability, place / (1000, 1000, 100) m, and 1 if there is one
    57-63  the task: target / (1000, 1000, 100) m, share of mission time left, and its stage as one of three

A weights file is an npz of w1, b1, w2, b2, ... (float32 or float64, w [out, in], b [out]) from 64 inputs over any
hidden widths, with ReLU between, to 4 outputs; the reference has 128 and 64. An optional string ``label`` names it.
"""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.errors import InputError, MissingDataError
from sar_core.mailboxes import STAMP
from sar_swarm.piloting.pursuit import Hypothesis, Stage

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

OBSERVATIONS, ACTIONS = 64, 4
OWN, NEIGHBOURS, TILE, CSI, TASK = slice(0, 9), slice(9, 27), slice(27, 52), slice(52, 57), slice(57, 64)
NEIGHBOUR_COUNT, TILE_SIDE, TILE_CELL_M = 6, 5, 5.0
PLACE_SCALE = np.array([1000.0, 1000.0, 100.0])
VELOCITY_SCALE = np.array([20.0, 20.0, 5.0])
OFFSET_SCALE = np.array([100.0, 100.0, 10.0])
MAX_HEADING_RATE_RPS, MAX_CLIMB_MPS, MAX_SPEED_MPS = math.radians(30.0), 1.0, 8.0
MAX_LAYERS, MAX_BYTES = 8, 16_000_000


class PolicyView(NamedTuple):
    """What one drone knows, ENU, SI: never more than its estimate, its hypotheses and what the link delivered."""

    position: Floats
    velocity: Floats
    heading_rad: float
    charge: float
    link: float
    others: Floats
    """float64[K, >= 3] rows that begin with a position; rows that are not finite there do not count."""
    hypotheses: Sequence[Hypothesis] = ()
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    time_left: float = 1.0
    stage: Stage = Stage.SYSTEMATIC


class Wish(NamedTuple):
    """What the policy wants, before the safety layer."""

    heading_rate_rps: float = 0.0
    climb_mps: float = 0.0
    speed_mps: float = 0.0
    scan: bool = False


@dataclass(frozen=True)
class Actor:
    """A perceptron: weights [out, in] (columns contiguous) and biases [out] per layer, and the file's digest."""

    weights: tuple[Singles, ...]
    biases: tuple[Singles, ...]
    label: str = ""
    sha256: str = ""


def link_quality(others: Floats, me: int, time_s: float, news_s: float = 2.0) -> float:
    """Share of the other drones (rows of sar_core.mailboxes) heard of within the last seconds; 1 if alone."""
    stamps = np.delete(others[:, STAMP], me) if len(others) > me else others[:, STAMP]
    return float(np.mean(np.abs(time_s - stamps) <= news_s)) if len(stamps) else 1.0


def observe(view: PolicyView) -> Floats:
    """The observation float64[64]. An own state that is not finite stays so, and the policy then stands still."""
    out = np.zeros(OBSERVATIONS)
    position = np.asarray(view.position, dtype=np.float64)
    heading = math.remainder(view.heading_rad, 2.0 * math.pi) if math.isfinite(view.heading_rad) else math.nan
    out[OWN] = (
        *(position / PLACE_SCALE),
        *(np.asarray(view.velocity) / VELOCITY_SCALE),
        heading / math.pi,
        view.charge,
        view.link,
    )
    out[NEIGHBOURS] = _neighbours(position, view.others)
    hypotheses = [h for h in view.hypotheses if _finite(h)]
    out[TILE] = probability_tile((position[0], position[1]), hypotheses).ravel()
    if hypotheses:
        best = max(hypotheses, key=lambda h: (h.confidence, -h.track))
        out[CSI] = (best.confidence, best.x / PLACE_SCALE[0], best.y / PLACE_SCALE[1], 0.0, 1.0)
    out[TASK.start : TASK.start + 3] = np.asarray(view.target) / PLACE_SCALE
    out[TASK.start + 3] = view.time_left
    out[TASK.start + 4 + int(view.stage)] = 1.0
    return out


def _finite(h: Hypothesis) -> bool:
    return all(math.isfinite(value) for value in (h.x, h.y, h.confidence, h.std_m))


def _neighbours(position: Floats, others: Floats) -> Floats:
    """Offsets float64[18] of the six nearest, nearest first; zeros where there are fewer."""
    out = np.zeros((NEIGHBOUR_COUNT, 3))
    offsets = np.asarray(others, dtype=np.float64)[:, :3] - position
    offsets = offsets[np.isfinite(offsets).all(axis=1)]
    nearest = np.argsort(np.linalg.norm(offsets, axis=1), kind="stable")[:NEIGHBOUR_COUNT]
    out[: len(nearest)] = offsets[nearest] / OFFSET_SCALE
    return out.ravel()


def probability_tile(centre: tuple[float, float], hypotheses: Sequence[Hypothesis]) -> Floats:
    """Probability float64[5, 5] that a victim is in each 5 m cell around the centre, [row south to north, column].

    Each hypothesis spreads its probability as a Gaussian of its std over the plane; several count as independent.
    """
    edges = (np.arange(TILE_SIDE + 1) - 0.5 * TILE_SIDE) * TILE_CELL_M
    nobody = np.ones((TILE_SIDE, TILE_SIDE))
    for h in hypotheses:
        spread = math.sqrt(2.0) * max(h.std_m, 1e-3)
        across = [0.5 * math.erf((centre[0] + edge - h.x) / spread) for edge in edges]
        along = [0.5 * math.erf((centre[1] + edge - h.y) / spread) for edge in edges]
        nobody *= 1.0 - min(max(h.confidence, 0.0), 1.0) * np.outer(np.diff(along), np.diff(across))
    return 1.0 - nobody


@compiled
def _layer(columns: Singles, bias: Singles, x: Singles, rectify: bool) -> Singles:
    """bias + columns' x for columns [in, out], summed in order of the inputs, so that every machine adds alike."""
    out = bias.copy()
    for j in range(x.size):
        for i in range(out.size):
            out[i] += columns[j, i] * x[j]
    if rectify:
        for i in range(out.size):
            out[i] = max(out[i], np.float32(0.0))
    return out


def forward(actor: Actor, observation: Floats) -> Floats:
    """The actor's raw outputs float64[4] in single precision, ReLU between the layers."""
    x: Singles = observation.astype(np.float32)
    last = len(actor.weights) - 1
    for layer, (w, b) in enumerate(zip(actor.weights, actor.biases, strict=True)):
        x = _layer(w.T, b, x, layer < last)
    return x.astype(np.float64)


def decode(raw: Floats) -> Wish:
    """Raw outputs as limited wishes: tanh for turning and climbing, a sigmoid for speed, scan above one half.

    Outputs that are not finite are no wish at all: hold still and level.
    """
    if not np.isfinite(raw).all():
        return Wish()
    return Wish(
        MAX_HEADING_RATE_RPS * math.tanh(raw[0]),
        MAX_CLIMB_MPS * math.tanh(raw[1]),
        MAX_SPEED_MPS * 0.5 * (1.0 + math.tanh(0.5 * raw[2])),
        bool(raw[3] > 0.0),
    )


def act(actor: Actor, view: PolicyView) -> Wish:
    """One decision: observe, run the actor, limit what it wants; a state that is not finite is no ground for a wish."""
    observation = observe(view)
    if not np.isfinite(observation).all():
        return Wish()
    return decode(forward(actor, observation))


def wish_to_velocity(heading_rad: float, wish: Wish, dt_s: float) -> tuple[float, float, float, float]:
    """Velocity (m/s, ENU) and the heading (rad, within +-pi) after turning for dt_s."""
    heading = math.remainder(heading_rad + wish.heading_rate_rps * dt_s, 2.0 * math.pi)
    return wish.speed_mps * math.cos(heading), wish.speed_mps * math.sin(heading), wish.climb_mps, heading


def load_actor(path: Path | str) -> Actor:
    """Read a weights file; whatever is wrong with it is named with the file, the array and what was expected."""
    file = Path(path)
    if not file.is_file():
        raise MissingDataError(f"{file}: no such weights file; expected an npz with w1, b1, ... of a 64-input actor")
    data = file.read_bytes() if file.stat().st_size <= MAX_BYTES else b""
    arrays = _arrays(file, data)
    label = str(arrays.pop("label"))[:200] if "label" in arrays else ""
    layers = sum(name.startswith("w") for name in arrays)
    names = [f"{kind}{k}" for k in range(1, layers + 1) for kind in "wb"]
    if sorted(names) != sorted(arrays) or not 1 <= layers <= MAX_LAYERS:
        found = ", ".join(sorted(arrays)[:20]) or "none"
        raise InputError(f"{file}: arrays found: {found}; expected w1, b1, w2, b2, ... (1 to {MAX_LAYERS} layers)")
    weights, biases, width = [], [], OBSERVATIONS
    for k in range(1, layers + 1):
        w = arrays[f"w{k}"]
        out = ACTIONS if k == layers else (len(w) if w.ndim == 2 else -1)
        weights.append(_checked(file, f"w{k}", w, (out, width)))
        biases.append(_checked(file, f"b{k}", arrays[f"b{k}"], (out,)))
        width = out
    return Actor(tuple(weights), tuple(biases), label, hashlib.sha256(data).hexdigest())


def _arrays(file: Path, data: bytes) -> dict[str, NDArray[np.generic]]:
    """The npz's arrays; never a pickle, never more than the limit once unpacked."""
    if not data:
        raise InputError(f"{file}: {file.stat().st_size} bytes; a weights file has 1 to {MAX_BYTES}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > MAX_BYTES:
            raise InputError(f"{file}: {unpacked} bytes unpacked; a weights file has at most {MAX_BYTES}")
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{file}: not a readable npz of plain arrays ({str(error).splitlines()[0]})") from error


def _checked(file: Path, name: str, array: NDArray[np.generic], shape: tuple[int, ...]) -> Singles:
    """A layer's array in single precision, or an error that says what it should have been."""
    wanted = "[" + ", ".join("any" if n < 0 else str(n) for n in shape) + "]"
    if array.dtype.kind != "f":
        raise InputError(f"{file}: array {name} has type {array.dtype}; expected float32 or float64 {wanted}")
    if array.ndim != len(shape) or any(n not in (-1, m) for n, m in zip(shape, array.shape, strict=True)):
        raise InputError(f"{file}: array {name} has shape {list(array.shape)}; expected {wanted}")
    if array.size == 0 or not np.isfinite(array).all():
        raise InputError(f"{file}: array {name} has values that are not finite, or none; expected finite {wanted}")
    with np.errstate(over="ignore"):
        single = np.asfortranarray(array, dtype=np.float32)
    if not np.isfinite(single).all():
        raise InputError(f"{file}: array {name} has values beyond float32")
    return single
