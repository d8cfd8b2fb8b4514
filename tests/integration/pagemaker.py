"""A page of many episodes, made of a few real ones."""

from __future__ import annotations

from sar_analysis.render.replaydata import Replay
from sar_analysis.results.model import Document


def multiplied(document: Document, replays: list[Replay], count: int) -> tuple[Document, list[Replay]]:
    """The same page with `count` episodes: the given ones again and again under other names."""
    given = document.result.episodes
    rows, shown = [], []
    for k in range(count):
        row, replay = given[k % len(given)], replays[k % len(given)]
        name = f"{row.episode_id}-copy{k:03d}" if k >= len(given) else row.episode_id
        rows.append(row.model_copy(update={"episode_id": name}))
        shown.append(Replay({**replay.data, "episode_id": name}, replay.scene))
    result = document.result.model_copy(update={"episodes": rows})
    return document.model_copy(update={"result": result}), shown
