"""From frames to observations: every second and link, how far, at which array phase, how sure, and may it speak.

One compiled call per drone and tick takes all links heard through the whole chain: screening, inter-antenna phase and
amplitude shape, tracker, phasor window, both gates, and the second's sums. Addresses are rows of one table.

The inter-antenna phase of a frame is the angle of the sum over subcarriers of H1 conj(H0): common phase, timing offset
and gain cancel. Within that second own motion is taken out with the tracker as it stood at the first frame, so the
mean phase belongs to the mean pose that the observation carries; a wrong rate of the tracker cancels to first order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.radio import array_axis
from sar_swarm.sensing.coherence import (
    BINS,
    TEMPLATE,
    W_COUNT,
    W_RING,
    WINDOW,
    TemplateConfig,
    coherence,
    push_phasor,
    shape_of,
)
from sar_swarm.sensing.frames import (
    LINKS,
    Addresses,
    Batch,
    Bytes,
    FrameConfig,
    FrameFilter,
    HeardFrames,
    Ints,
    Reason,
    screen,
)
from sar_swarm.sensing.gate import (
    A_NOISE,
    A_SCORE,
    AMPLITUDE_GATE,
    P_OPEN,
    PHASE_GATE,
    STATES,
    GateConfig,
    GateState,
    passes,
    step_amplitude_gate,
    step_phase_gate,
)
from sar_swarm.sensing.tracker import TRACKER, TrackerConfig, correct, phase_of, predict, wrap

Floats = NDArray[np.float64]

# A link's group of frames towards its next observation: frames heard, frames used, whether those are blocked ones, when
# it began, the largest noise factor with its state, whether any was a beacon, then sums over the frames used.
G_HEARD, G_USED, G_BLOCKED, G_START, G_WORST, G_STATE, G_BEACON = range(7)
G_TIME, G_POS, G_AXIS, G_COS, G_SIN, G_RSSI, G_NOISE2 = 7, 8, 11, 14, 15, 16, 17
GROUP = 18

# All of a link's memory in one row: last reported state, then the rows of its parts.
M_REPORTED = 0
M_WINDOW = 1
M_TEMPLATE = M_WINDOW + W_RING + 2 * WINDOW
M_PHASE_GATE = M_TEMPLATE + TEMPLATE
M_AMPLITUDE_GATE = M_PHASE_GATE + PHASE_GATE
M_TRACKER = M_AMPLITUDE_GATE + AMPLITUDE_GATE
M_START = M_TRACKER + TRACKER
M_GROUP = M_START + TRACKER
MEMORY = M_GROUP + GROUP

# What the kernel hands back: a row per observation, and a row per change of a gate.
O_ROW, O_TIME, O_POS, O_AXIS, O_PHASE, O_RSSI, O_USED, O_NOISE = 0, 1, 2, 5, 8, 9, 10, 11
O_STATE, O_OPEN, O_USABLE, O_BEACON, O_COHERENCE, O_WINDOW = 12, 13, 14, 15, 16, 17
OBSERVED = 18
C_ROW, C_OPEN, C_STATE, C_COHERENCE, C_SCORE = 0, 1, 2, 3, 4
CHANGED = 5

# Where the kernel finds its own numbers, and where in the same array the parts' configurations begin.
_GROUP_S, _GROUP_FRAMES, _MIN_FRAMES, _FORCED_OPEN, _REFERENCE_DBM, _EXPONENT, _SILENCE_NS = range(7)
_GATE_AT = 7
_TEMPLATE_AT = _GATE_AT + GateConfig().array().size
_TRACKER_AT = _TEMPLATE_AT + TemplateConfig().array().size

_NOT_FINITE = int(Reason.NOT_FINITE)

ROUNDING_DB = 1.0 / math.sqrt(12.0)
"""Standard deviation that rounding to whole dB leaves."""

MAX_PHASE_STD = math.pi / math.sqrt(3.0)
"""Standard deviation of a phase about which nothing is known."""


@dataclass(frozen=True)
class RangeLaw:
    """Log-distance law: rssi = reference_dbm - 10 exponent log10(range / 1 m). Free space by default.

    The link budget says what a victim's phone is expected to radiate; the default is -3 dBm less the 40.2 dB of the
    first metre at 2.437 GHz. The standard deviations (dB) add in power: shadowing and what devices transmit more or
    less stay the same over an observation's frames, fading does not.
    """

    reference_dbm: float = -43.2
    exponent: float = 2.0
    shadowing_db: float = 4.0
    power_db: float = 5.0
    fading_db: float = 2.2

    def range_m(self, rssi_dbm: float) -> float:
        """The range at which this signal strength is the usual one."""
        return float(10.0 ** ((self.reference_dbm - rssi_dbm) / (10.0 * self.exponent)))

    def log_std(self, spread_db: float) -> float:
        """A spread of the signal strength as one of the range's natural logarithm."""
        return spread_db * math.log(10.0) / (10.0 * self.exponent)

    def relative_std(self, frames: float, noise: float = 1.0) -> float:
        """Standard deviation of the logarithmic range of a mean over so many frames; the gate's noise factor counts for
        what is new in each frame."""
        fresh_db = noise * math.hypot(self.fading_db, ROUNDING_DB) / math.sqrt(frames)
        return self.log_std(math.sqrt(self.shadowing_db**2 + self.power_db**2 + fresh_db**2))


@dataclass(frozen=True)
class ListenerConfig:
    """How a drone listens: the chain's parts, and how frames are gathered to observations."""

    gate: GateConfig = field(default_factory=GateConfig)
    template: TemplateConfig = field(default_factory=TemplateConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    law: RangeLaw = field(default_factory=RangeLaw)
    frames: FrameConfig = field(default_factory=FrameConfig)
    group_s: float = 1.0
    group_frames: int = 10
    min_frames: int = 2
    """Fewer frames than this in a group make no observation: a lone one is most often a phone's scan."""
    phase_floor_rad: float = 0.02
    """What the receiver itself leaves in a mean phase; own pose errors are the fusion's to add."""

    def array(self) -> Floats:
        """The numbers the kernel takes, its own and then the parts'."""
        own = [
            self.group_s,
            self.group_frames,
            self.min_frames,
            float(self.gate.forced_open),
            self.law.reference_dbm,
            self.law.exponent,
            self.frames.silence_s * 1e9,
        ]
        return np.concatenate([own, self.gate.array(), self.template.array(), self.tracker.array()])


class Observation(NamedTuple):
    """What one drone made of one transmitter within a second; time, position and axis are means over its frames.

    ``coherence`` is R of the last 50 frames, ``usable`` whether the gates let it speak for a victim.
    """

    drone: int
    address: int
    time_s: float
    position: tuple[float, float, float]
    axis: tuple[float, float, float]
    range_m: float
    range_std_m: float
    phase_rad: float
    phase_std_rad: float
    coherence: float
    open: bool
    state: GateState
    usable: bool
    rssi_dbm: float
    frames: int
    beacon: bool

    def numbers(self) -> tuple[float, ...]:
        """drone, time, position, axis, range, its std, phase, its std: the row a position solver takes."""
        return (
            float(self.drone),
            self.time_s,
            *self.position,
            *self.axis,
            self.range_m,
            self.range_std_m,
            self.phase_rad,
            self.phase_std_rad,
        )


class GateChange(NamedTuple):
    """A gate changed: the phase gate at once, the amplitude gate by the worst frame that an observation is made of."""

    drone: int
    address: int
    time_s: float
    open: bool
    state: GateState
    coherence: float
    score: float


@inlined
def _read_frame(csi: Bytes, power: Floats) -> tuple[float, float]:
    """Sum over subcarriers of H1 conj(H0) (real, imaginary) and both antennas' power [56], of int8 [2, 56, 2]."""
    real = 0
    imaginary = 0
    for k in range(BINS):
        i0, q0 = int(csi[0, k, 0]), int(csi[0, k, 1])
        i1, q1 = int(csi[1, k, 0]), int(csi[1, k, 1])
        real += i1 * i0 + q1 * q0
        imaginary += q1 * i0 - i1 * q0
        power[k] = i0 * i0 + q0 * q0 + i1 * i1 + q1 * q1
    return float(real), float(imaginary)


class Links(NamedTuple):
    """All that a drone remembers of its links: memory has a row per address, counts and shares are totals."""

    known: Addresses
    stamps: Ints
    counts: Ints
    shares: Ints
    memory: Floats


@compiled
def _gather(group: Floats, blocked: bool, state: int, noise: float, time_s: float, cosine: float, sine: float) -> bool:
    """Count a frame towards a group; False where it is not to be summed up.

    Blocked frames make an observation only where no other is there: the first frame that passes throws them out.
    """
    group[G_HEARD] += 1.0
    if blocked and group[G_USED] > 0.0 and group[G_BLOCKED] == 0.0:
        return False
    if not blocked and group[G_BLOCKED] == 1.0:
        group[G_USED] = group[G_WORST] = group[G_BEACON] = 0.0
        group[G_TIME:] = 0.0
    group[G_BLOCKED] = 1.0 if blocked else 0.0
    group[G_USED] += 1.0
    group[G_TIME] += time_s
    group[G_COS] += cosine
    group[G_SIN] += sine
    group[G_NOISE2] += noise * noise
    if blocked or noise > group[G_WORST]:
        group[G_WORST] = noise
        group[G_STATE] = state
    return True


@compiled
def _conclude(memory: Floats, row: int, scratch: Floats, rules: Floats, out: Floats) -> bool:
    """Write a group's observation and empty the group; False where it has too few frames to tell anything."""
    group, tracker_rules = memory[M_GROUP:], rules[_TRACKER_AT:]
    n = group[G_USED]
    enough: bool = n >= rules[_MIN_FRAMES]
    if enough:
        px, py, pz = group[G_POS] / n, group[G_POS + 1] / n, group[G_POS + 2] / n
        ax, ay, az = group[G_AXIS], group[G_AXIS + 1], group[G_AXIS + 2]
        length = math.sqrt(ax * ax + ay * ay + az * az)
        ax, ay, az = ax / length, ay / length, az / length
        scratch[:] = memory[M_START:M_GROUP]
        predict(scratch, px, py, pz, group[G_TIME] / n, 1.0, tracker_rules)
        out[O_ROW] = row
        out[O_TIME] = group[G_TIME] / n
        out[O_POS], out[O_POS + 1], out[O_POS + 2] = px, py, pz
        out[O_AXIS], out[O_AXIS + 1], out[O_AXIS + 2] = ax, ay, az
        mean = math.atan2(group[G_SIN], group[G_COS])
        out[O_PHASE] = wrap(phase_of(scratch, ax, ay, az, pz, tracker_rules) + mean)
        out[O_RSSI] = group[G_RSSI] / n
        out[O_USED] = n
        out[O_NOISE] = math.sqrt(group[G_NOISE2] / n)
        out[O_STATE] = group[G_STATE]
        out[O_OPEN] = memory[M_PHASE_GATE + P_OPEN]
        out[O_USABLE] = 1.0 - group[G_BLOCKED]
        out[O_BEACON] = group[G_BEACON]
        out[O_COHERENCE] = coherence(memory[M_WINDOW:M_TEMPLATE])
        out[O_WINDOW] = memory[M_WINDOW + W_COUNT]
    group[:] = 0.0
    return enough


@compiled
def hear(
    links: Links, rules: Floats, batch: Batch, position: Floats, attitude: Floats, observed: Floats, changed: Floats
) -> tuple[int, int]:
    """Take one tick's frames of a drone through the whole chain; returns how many observations and changes it wrote.

    observed [>= 2 L, OBSERVED] and changed [>= L, CHANGED] are filled from the top.
    """
    heard = batch.address.size
    px, py, pz = position[0], position[1], position[2]
    ax, ay, az = array_axis(attitude[0], attitude[1], attitude[2], attitude[3])
    if not math.isfinite(px + py + pz + ax + ay + az):
        links.counts[_NOT_FINITE] += heard
        return 0, 0
    rows = np.empty(heard, dtype=np.int64)
    fresh = np.empty(heard, dtype=np.bool_)
    screen(links.known, links.stamps, batch, rules[_SILENCE_NS], links.counts, rows, fresh)
    gate_rules, template_rules = rules[_GATE_AT:_TEMPLATE_AT], rules[_TEMPLATE_AT:_TRACKER_AT]
    tracker_rules = rules[_TRACKER_AT:]
    forced = rules[_FORCED_OPEN] == 1.0
    time_s = batch.stamp_ns * 1e-9
    power, shape, scratch = np.empty(BINS), np.empty(BINS), np.empty(TRACKER)
    observations = 0
    changes = 0
    for i in range(heard):
        if rows[i] < 0:
            continue
        memory = links.memory[rows[i]]
        if fresh[i]:
            memory[:] = 0.0
            memory[M_REPORTED] = -1.0
        window, template = memory[M_WINDOW:M_TEMPLATE], memory[M_TEMPLATE:M_PHASE_GATE]
        phase_gate, amplitude_gate = memory[M_PHASE_GATE:M_AMPLITUDE_GATE], memory[M_AMPLITUDE_GATE:M_TRACKER]
        tracker, start, group = memory[M_TRACKER:M_START], memory[M_START:M_GROUP], memory[M_GROUP:]
        before = observations
        if group[G_HEARD] > 0.0 and time_s - group[G_START] >= rules[_GROUP_S]:
            observations += int(_conclude(memory, rows[i], scratch, rules, observed[observations]))

        real, imaginary = _read_frame(batch.csi[i], power)
        shape_of(power, shape)
        state = step_amplitude_gate(amplitude_gate, template, shape, gate_rules, template_rules)

        range_m = 10.0 ** ((rules[_REFERENCE_DBM] - batch.rssi_dbm[i]) / (10.0 * rules[_EXPONENT]))
        predict(tracker, px, py, pz, time_s, range_m, tracker_rules)
        measured = math.atan2(imaginary, real)
        residual = wrap(measured - phase_of(tracker, ax, ay, az, pz, tracker_rules))
        if group[G_HEARD] == 0.0:
            group[G_START] = time_s
            start[:] = tracker
        correct(tracker, residual, ax, ay, az, tracker_rules)
        r_value = push_phasor(window, math.cos(residual), math.sin(residual))
        was_open = phase_gate[P_OPEN] == 1.0
        is_open = step_phase_gate(phase_gate, r_value, window[W_COUNT], gate_rules)
        links.shares[int(is_open), state] += 1

        blocked = not forced and not passes(is_open, state)
        noise = 1.0 if forced or blocked else amplitude_gate[A_NOISE]
        scratch[:] = start
        predict(scratch, px, py, pz, time_s, 1.0, tracker_rules)
        away = measured - phase_of(scratch, ax, ay, az, pz, tracker_rules)
        if _gather(group, blocked, state, noise, time_s, math.cos(away), math.sin(away)):
            group[G_POS] += px
            group[G_POS + 1] += py
            group[G_POS + 2] += pz
            group[G_AXIS] += ax
            group[G_AXIS + 1] += ay
            group[G_AXIS + 2] += az
            group[G_RSSI] += batch.rssi_dbm[i]
            if batch.beacon[i]:
                group[G_BEACON] = 1.0
        if group[G_HEARD] >= rules[_GROUP_FRAMES]:
            observations += int(_conclude(memory, rows[i], scratch, rules, observed[observations]))

        concluded = observed[observations - 1, O_STATE] if observations > before else memory[M_REPORTED]
        if is_open != was_open or concluded != memory[M_REPORTED]:
            memory[M_REPORTED] = concluded if concluded >= 0.0 else float(state)
            change = changed[changes]
            change[C_ROW] = rows[i]
            change[C_OPEN] = 1.0 if is_open else 0.0
            change[C_STATE] = memory[M_REPORTED]
            change[C_COHERENCE] = r_value
            change[C_SCORE] = amplitude_gate[A_SCORE]
            changes += 1
    return observations, changes


class Listener:
    """One drone's ears: remembers up to 64 links and turns frames into observations."""

    def __init__(self, drone: int, config: ListenerConfig | None = None) -> None:
        self.config = config or ListenerConfig()
        self.filter = FrameFilter(drone, self.config.frames)
        self.drone = drone
        shares = np.zeros((2, STATES), dtype=np.int64)
        memory = np.zeros((LINKS, MEMORY))
        self._links = Links(self.filter.known, self.filter.stamps, self.filter.counts, shares, memory)
        self._rules = self.config.array()
        self._observed = np.empty((2 * LINKS, OBSERVED))
        self._changed = np.empty((LINKS, CHANGED))

    @property
    def dropped(self) -> dict[str, int]:
        """Frames dropped so far, by reason."""
        return dict(self.filter.dropped)

    @property
    def shares(self) -> Ints:
        """Frames so far by phase gate (closed, open) and amplitude state [2, states]."""
        return self._links.shares.copy()

    def listen(
        self, frames: HeardFrames, position: Floats, attitude: Floats, time_s: float, drone: int | None = None
    ) -> tuple[list[Observation], list[GateChange]]:
        """Hear one tick's frames at the drone's own estimated position [3] (ENU) and attitude [4] (w x y z).

        ``drone`` is whose frames they claim to be, where they claim it.
        """
        batch = self.filter.admit(frames, round(time_s * 1e9), drone)
        if batch is None:
            return [], []
        heard = len(batch.address)
        if heard > len(self._changed):
            self._observed = np.empty((2 * heard, OBSERVED))
            self._changed = np.empty((heard, CHANGED))
        observations, changes = hear(self._links, self._rules, batch, position, attitude, self._observed, self._changed)
        return (
            [self._observation(self._observed[k].tolist()) for k in range(observations)],
            [self._change(self._changed[k].tolist(), time_s) for k in range(changes)],
        )

    def _observation(self, row: list[float]) -> Observation:
        law = self.config.law
        range_m = law.range_m(row[O_RSSI])
        return Observation(
            self.drone,
            int(self._links.known[int(row[O_ROW])]),
            row[O_TIME],
            (row[O_POS], row[O_POS + 1], row[O_POS + 2]),
            (row[O_AXIS], row[O_AXIS + 1], row[O_AXIS + 2]),
            range_m,
            range_m * law.relative_std(row[O_USED], row[O_NOISE]),
            row[O_PHASE],
            phase_std(row[O_COHERENCE], row[O_WINDOW], row[O_USED], self.config.phase_floor_rad),
            row[O_COHERENCE],
            row[O_OPEN] == 1.0,
            GateState(int(row[O_STATE])),
            row[O_USABLE] == 1.0,
            row[O_RSSI],
            int(row[O_USED]),
            row[O_BEACON] == 1.0,
        )

    def _change(self, row: list[float], time_s: float) -> GateChange:
        return GateChange(
            self.drone,
            int(self._links.known[int(row[C_ROW])]),
            time_s,
            row[C_OPEN] == 1.0,
            GateState(int(row[C_STATE])),
            row[C_COHERENCE],
            row[C_SCORE],
        )


def phase_std(coherence: float, window: float, frames: float, floor_rad: float) -> float:
    """Standard deviation of a mean phase over ``frames`` frames, from R of a longer window.

    A mean direction of n von Mises draws has variance 1 / (n kappa A(kappa)) (Mardia and Jupp, Directional Statistics,
    2000, section 4.8); A is R with the window's bias taken out, A^2 = (W R^2 - 1) / (W - 1). What the
    amplitude gate thinks of the frames has no part in it: their phases are as good in any of its states (measured at
    kappa 8: 0.12 rad in Accept, PredictOnly and Recalibrate, 0.15 in Reject).
    """
    a = math.sqrt(max((window * coherence * coherence - 1.0) / max(window - 1.0, 1.0), 1e-6))
    if a >= 1.0:
        return floor_rad
    std = 1.0 / math.sqrt(frames * concentration(a) * a)
    return min(math.hypot(std, floor_rad), MAX_PHASE_STD)


def concentration(a: float) -> float:
    """kappa of a mean resultant length a = I1(kappa)/I0(kappa) (Best and Fisher 1981), good to 1 %."""
    if a < 0.53:
        return 2.0 * a + a**3 + 5.0 * a**5 / 6.0
    if a < 0.85:
        return -0.4 + 1.39 * a + 0.43 / (1.0 - a)
    return 1.0 / (a**3 - 4.0 * a * a + 3.0 * a)
