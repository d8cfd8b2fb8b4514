"""A page of many episodes, made of a few real ones."""

from __future__ import annotations

import copy
from typing import Any

from sar_analysis.render.replaydata import Replay


def multiplied(results: dict[str, Any], replays: list[Replay], count: int) -> tuple[dict[str, Any], list[Replay]]:
    """The same page with `count` episodes: the given ones again and again under other names."""
    results = copy.deepcopy(results)
    given = results["result"]["episodes"]
    rows, shown = [], []
    for k in range(count):
        row, replay = given[k % len(given)], replays[k % len(given)]
        name = f"{row['episode_id']}-copy{k:03d}" if k >= len(given) else row["episode_id"]
        rows.append({**row, "episode_id": name})
        shown.append(Replay({**replay.data, "episode_id": name}, replay.scene))
    results["result"]["episodes"] = rows
    return results, shown
