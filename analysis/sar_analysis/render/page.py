"""One HTML file with everything a reader needs: tables, charts, and a replay of every episode; it asks no network.

Tables and charts are written here, so they are there without scripts and in print. The scripts sort and filter the
episodes and play replays, which lie in the page deflated and are opened one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sar_analysis.metrics.catalogue import Metric, of_missions
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.render import graphs, panels
from sar_analysis.render.markup import Html, join, tag
from sar_analysis.render.panels import note, number, section
from sar_analysis.render.replaydata import Replay, make_replays, pack
from sar_analysis.table import Table

SECTIONS = (
    panels.summary,
    panels.front,
    panels.conditions,
    panels.seeds,
    panels.strata,
    graphs.envelope,
    graphs.profiles,
    graphs.reliability,
    graphs.coverage,
    panels.comparisons,
    panels.optimality,
    panels.registration,
    panels.warnings,
)
SCRIPTS = ("episodes.js", "replay.js", "main.js")
NO_BAG = "no bag"


def write_page(
    results: Mapping[str, Any], table: Table, bags: Mapping[str, Path], out: Path, workers: int | None = None
) -> Path:
    """Write the page of a results document; `bags` gives each episode's folder by its key, as `Table.bags` does."""
    rows = results["result"].get("episodes") or []
    found = match_rows(rows, table.episodes)
    wanted = {e.key: bags[e.key] for e in found if e is not None and e.key in bags}
    replays = make_replays(wanted, workers)
    by_row = [None if e is None else replays.get(e.key) for e in found]
    out.write_text(render(results, by_row), encoding="utf-8")
    return out


def match_rows(rows: Sequence[Mapping[str, Any]], episodes: Sequence[EpisodeMetrics]) -> list[EpisodeMetrics | None]:
    """The episode behind each row: the first not yet taken whose id and every figure are the row's.

    Ids alone do not tell noise levels apart.
    """
    left: dict[str, list[EpisodeMetrics]] = {}
    for e in episodes:
        left.setdefault(e.episode_id, []).append(e)
    found: list[EpisodeMetrics | None] = []
    for row in rows:
        same = left.get(row["episode_id"], [])
        keys = [k for k in row if k not in ("condition", "victims") and k in EpisodeMetrics.__dataclass_fields__]
        match = next((e for e in same if all(getattr(e, k) == row[k] for k in keys)), None)
        if match is not None:
            same.remove(match)
        found.append(match)
    return found


def render(results: Mapping[str, Any], replays: Sequence[Replay | str | None]) -> str:
    """The page as text; replays in the order of the document's episodes, a reason or None where there is none."""
    result = results["result"]
    rows = result.get("episodes") or []
    links = link_names(rows)
    scenes = {r.data["scene"]: r.scene for r in replays if isinstance(r, Replay) and r.scene is not None}
    data = [tag("script", pack(scene), type="text/plain", data_scene=key) for key, scene in sorted(scenes.items())]
    data += [
        tag("script", pack(r.data), type="text/plain", data_replay=link)
        for link, r in zip(links, replays, strict=True)
        if isinstance(r, Replay)
    ]
    title = f"{result.get('title', 'Results')}: search and rescue with drone swarms"
    parts = {
        "TITLE": join(title),
        "STYLE": Html(_asset("page.css")),
        "HEAD": _head(result),
        "SECTIONS": join(*(make(result) for make in SECTIONS), panels.card(result, results.get("run") or {})),
        "EPISODES": _episodes(rows, links, replays),
        "DATA": join(*data),
        "SCRIPT": Html("".join(_asset(name) for name in SCRIPTS)),
    }
    page = _asset("page.html")
    for name, text in parts.items():
        before, mark, after = page.partition(f"<!--{name}-->")
        if not mark:
            raise LookupError(f"assets/page.html has no place for {name}")
        page = f"{before}{text}{after}"
    return page


def link_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a link calls each episode: its id, and where several share it the condition or a number after it."""
    taken: dict[str, int] = {}
    names = []
    for row in rows:
        name = str(row["episode_id"])
        if name in taken:
            name = f"{name}~{row.get('condition', '')}"
        taken[name] = taken.get(name, 0) + 1
        names.append(name if taken[name] == 1 else f"{name}~{taken[name]}")
        taken.setdefault(str(row["episode_id"]), 1)
    return names


def _asset(name: str) -> str:
    return files("sar_analysis").joinpath("assets", name).read_text(encoding="utf-8")


def _head(result: Mapping[str, Any]) -> Html:
    counts = result.get("counts") or {}
    tiers = ", ".join(map(str, result.get("tiers") or [])) or "unknown"
    told = f"Tier: {tiers}. {counts.get('valid', 0)} valid and {counts.get('invalid', 0)} INVALID missions."
    return join(tag("h1", result.get("title", "Results")), tag("p", told, class_="lead"))


def _episodes(rows: Sequence[Mapping[str, Any]], links: Sequence[str], replays: Sequence[Replay | str | None]) -> Html:
    if not rows:
        return section("episodes", "Episodes", note("The document lists no episodes."))
    head = [("episode_id", "episode"), ("condition", "condition"), ("seed", "seed"), ("episode", "layout")]
    head += [("valid", "valid"), *((m.key, m.heading) for m in _columns())]
    cells = [
        tag("th", tag("button", label, type="button", data_sort=key), scope="col", aria_sort="none")
        for key, label in head
    ]
    body = [_row(row, link, replay) for row, link, replay in zip(rows, links, replays, strict=True)]
    lost = [f"{r['episode_id']}: {why}" for r, why in zip(rows, replays, strict=True) if isinstance(why, str)]
    table = tag("table", tag("thead", tag("tr", *cells)), tag("tbody", *body), id="episode-table")
    return join(
        tag("div", table, class_="wide tall", tabindex=0, role="region", aria_label="Episodes"),
        note(f"Replays that cannot be shown: {'; '.join(lost)}") if lost else None,
        *(note(text) for text in _contradictions(replays)),
    )


def _columns() -> list[Metric]:
    return [m for m in of_missions() if m.listed == "page"]


def _contradictions(replays: Sequence[Replay | str | None]) -> list[str]:
    """Bags that name one world file and hold different geometries of it; each replay is drawn with its own."""
    maps: dict[tuple[str, str], set[str]] = {}
    for r in replays:
        if isinstance(r, Replay) and r.scene is not None:
            maps.setdefault((r.scene["name"], r.scene["sha256"]), set()).add(r.data["scene"])
    return [
        f"{len(m)} different maps are all called {name} {sha[:12]}." for (name, sha), m in maps.items() if len(m) > 1
    ]


def _row(row: Mapping[str, Any], link: str, replay: Replay | str | None) -> Html:
    opens = isinstance(replay, Replay)
    name = tag("a", row["episode_id"], href=f"#episode={_quoted(link)}", data_open=link) if opens else row["episode_id"]
    why = None if opens else tag("small", NO_BAG if replay is None else "bag cannot be read")
    valid = "yes" if row.get("valid") else f"INVALID: {row.get('invalid_reason') or 'no reason given'}"
    cells = [tag("th", name, why, scope="row")]
    cells += [tag("td", row.get(key), data_value=row.get(key)) for key in ("condition", "seed", "episode")]
    cells.append(tag("td", valid, data_value=int(bool(row.get("valid")))))
    for key in (m.key for m in _columns()):
        value = row.get(key)
        text = _found(row) if key == "detections" else _cell(key, value)
        cells.append(tag("td", text, data_value=value, class_=_mark(key, value)))
    return tag(
        "tr",
        *cells,
        data_collisions=row.get("collisions") or 0,
        data_alarms=row.get("false_alarms") or 0,
        data_invalid=int(not row.get("valid")),
        class_=None if row.get("valid") else "invalid",
    )


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "never" if key == "time_to_first_detection_s" else "undefined"
    return str(value) if isinstance(value, int) else number(key, value)


def _found(row: Mapping[str, Any]) -> str:
    if row.get("detections") is None:
        return "no radio"
    return f"{row['detections']} of {row['victims']}" if "victims" in row else str(row["detections"])


def _mark(key: str, value: Any) -> str | None:
    return "bad" if key in ("collisions", "false_alarms") and value else None


def _quoted(text: str) -> str:
    return quote(text, safe="-._~")
