"""Coverage from the true track at recorded ticks.

The sweep itself lies in sar_core, because an episode's record counts its return's new cells by the very same code.
"""

from sar_core.sweep import CELL_M, RADIUS_M, Coverage, grid_shape, sweep

__all__ = ["CELL_M", "RADIUS_M", "Coverage", "grid_shape", "sweep"]
