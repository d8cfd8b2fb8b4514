"""The drones' radios as the simulator has them: they know the truth that the swarm does not."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sar_eval.scenario.model import Episode
from sar_sim.radio.receiver import Frames, Receiver

Floats = NDArray[np.float64]


class Receiving(Protocol):
    """Radios that are asked tick by tick, in ascending order; may raise SpoiltError."""

    def listen(self, stamp_ns: int, tick: int, position: Floats, attitude: Floats) -> list[Frames]: ...
    def close(self) -> None: ...


def make_receiver(episode: Episode) -> Receiver:
    """The radios of an episode's drones."""
    assert episode.radio is not None
    s = episode.scenario
    return Receiver(
        episode.radio,
        episode.world,
        episode.devices,
        s.drones,
        episode.seed,
        episode.index,
        s.sigma,
        s.kappa,
    )


def receiver_for(episode: Episode) -> Receiver | None:
    """The embedded radios, where the episode has any."""
    return None if episode.radio is None else make_receiver(episode)
