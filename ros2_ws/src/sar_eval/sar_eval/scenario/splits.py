"""Who draws which layouts: ranges of numbers that do not overlap, so that nothing is tested on what it was made on.

A mission that flies no fixed set has a layout number, which is also its seed. Fixed sets draw from streams of their own
instead, whose numbers no single mission can have.
"""

from __future__ import annotations

from dataclasses import dataclass

from sar_core.errors import InputError
from sar_sim.radio.devices import VERSIONS

SETS, WIDE_SETS = VERSIONS, 2 * VERSIONS
"""What fixed sets add to their version: a stream's number names both. Single missions draw from the bare version."""


@dataclass(frozen=True)
class Split:
    """A range of layout numbers with one use."""

    name: str
    first: int
    size: int

    @property
    def end(self) -> int:
        """The first number beyond it."""
        return self.first + self.size

    def layout(self, k: int) -> int:
        """The number of its k-th layout, from 0; one beyond its range would be another split's."""
        if not 0 <= k < self.size:
            raise InputError(f"layout {k} of split {self.name}: it has {self.size}, 0 to {self.size - 1}")
        return self.first + k


EVALUATION = Split("evaluation", 0, 1_000_000)
"""Missions, studies and campaigns."""
CALIBRATION = Split("calibration", 1_000_000, 200_000)
"""On which the confidence is fitted."""
FIT = Split("fit", 1_200_000, 100_000)
"""On which Stage 1's statistics of sensing are fitted."""
CHECK = Split("check", 1_300_000, 100_000)
"""On which those are checked."""
TUNING = Split("tuning", 1_400_000, 100_000)
"""On which the shape and constants of a decision rule are chosen."""
TEST = Split("test", 1_500_000, 100_000)
"""On which a rule that was tuned and calibrated is held to what it promises."""
SPLITS = (EVALUATION, CALIBRATION, FIT, CHECK, TUNING, TEST)
