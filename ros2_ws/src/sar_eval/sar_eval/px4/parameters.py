"""The parameters a real PX4 is started with: the vehicle's own file, and what an evaluation adds."""

from __future__ import annotations

from sar_eval.config import Episode
from sar_eval.resources import params_path
from sar_sim.parameters import read_parameters


def parameters_of(episode: Episode) -> dict[str, str]:
    """Name to value, as PX4's ``param set`` takes them."""
    given = read_parameters(params_path(episode.vehicle.name))
    ours = {
        "SDLOG_PROFILE": 1.0,  # PX4's logger stays on, for its simulator waits for it; it need not write much
        "SIM_BAT_DRAIN": episode.vehicle.airframe.endurance,
        "SIM_BAT_MIN_PCT": 0.0,
    }
    return {name: _text(value) for name, value in {**given, **ours}.items()}


def _text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
