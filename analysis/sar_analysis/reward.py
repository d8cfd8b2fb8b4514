"""The return of an episode: one pure function of what the referee counted, the same for every stage.

Weights are those of the swarm's published reward (ADR-148 section 5.1): +10 per new cell, +50 per confirmed victim,
+5 per triangulation contribution, -2 per idle step, -100 per collision, -50 per geofence breach, -30 per battery
depleted without a return. The source leaves three words open; here they mean:

- triangulation contribution: one independent view behind the first confident report of a victim that was there;
- idle step: one whole second of the search in which a drone flew slower than 0.5 m/s over ground;
- depleted without a return: the charge read zero and the drone never flew back or landed by failsafe.

A bag holds what every term needs. A false alarm costs nothing in this reward; its rate is reported beside the return.
"""

from __future__ import annotations

from dataclasses import dataclass

STEP_S = 1.0
IDLE_MPS = 0.5


@dataclass(frozen=True)
class Counts:
    """What the referee counted in one episode; without radio nothing was confirmed."""

    new_cells: int
    confirmed_victims: int
    triangulations: int
    idle_steps: int
    collisions: int
    geofence_breaches: int
    depleted: int


@dataclass(frozen=True)
class Weights:
    """Reward per count."""

    new_cells: float = 10.0
    confirmed_victims: float = 50.0
    triangulations: float = 5.0
    idle_steps: float = -2.0
    collisions: float = -100.0
    geofence_breaches: float = -50.0
    depleted: float = -30.0


WEIGHTS = Weights()


def episode_return(counts: Counts, weights: Weights = WEIGHTS) -> float:
    """The undiscounted sum over the whole swarm."""
    return float(sum(getattr(weights, name) * count for name, count in vars(counts).items()))
