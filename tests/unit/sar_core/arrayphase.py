"""The phase that a wave should have between the antennas: what estimates and frames are held to."""

from __future__ import annotations

from sar_core.radio import BASELINE


def expected_phase(ax: float, ay: float, az: float, ux: float, uy: float, uz: float) -> float:
    """Phase of antenna 1 minus antenna 0 for a plane wave from unit direction u (receiver to transmitter).

    a is the array's axis. The wave reaches the antenna on the transmitter's side first, so its phase leads.
    """
    return BASELINE * (ax * ux + ay * uy + az * uz)
