"""One HTML file with everything a reader needs: tables, charts, and a replay of every episode; it asks no network.

Tables and charts are written here, so they are there without scripts and in print. The scripts sort and filter the
episodes and play replays, which lie in the page deflated and are opened one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from sar_analysis.metrics.catalogue import Metric, of_missions
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.render import graphs, panels
from sar_analysis.render.markup import Html, join, tag
from sar_analysis.render.panels import note, number
from sar_analysis.render.replaydata import Replay, make_replays, pack
from sar_analysis.results.model import Document, ResultBody
from sar_analysis.results.rows import EpisodeRow
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
    document: Document, table: Table, bags: Mapping[str, Path], out: Path, workers: int | None = None
) -> Path:
    """Write the page of a results document; `bags` gives each episode's folder by its key, as `Table.bags` does."""
    found = match_rows(document.result.episodes, table.episodes)
    wanted = {e.key: bags[e.key] for e in found if e is not None and e.key in bags}
    replays = make_replays(wanted, workers)
    by_row = [None if e is None else replays.get(e.key) for e in found]
    out.write_text(render(document, by_row), encoding="utf-8")
    return out


def match_rows(rows: Sequence[EpisodeRow], episodes: Sequence[EpisodeMetrics]) -> list[EpisodeMetrics | None]:
    """The episode behind each row: the first not yet taken whose id and every figure are the row's.

    Ids alone do not tell noise levels apart.
    """
    left: dict[str, list[EpisodeMetrics]] = {}
    for e in episodes:
        left.setdefault(e.episode_id, []).append(e)
    found: list[EpisodeMetrics | None] = []
    for row in rows:
        same = left.get(row.episode_id, [])
        told = {k: v for k, v in row if k not in ("condition", "victims") and k in EpisodeMetrics.__dataclass_fields__}
        match = next((e for e in same if all(getattr(e, k) == v for k, v in told.items())), None)
        if match is not None:
            same.remove(match)
        found.append(match)
    return found


def render(document: Document, replays: Sequence[Replay | str | None]) -> str:
    """The page as text; replays in the order of the document's episodes, a reason or None where there is none."""
    result, rows = document.result, document.result.episodes
    links = link_names(rows)
    scenes = {r.data["scene"]: r.scene for r in replays if isinstance(r, Replay) and r.scene is not None}
    data = [tag("script", pack(scene), type="text/plain", data_scene=key) for key, scene in sorted(scenes.items())]
    data += [
        tag("script", pack(r.data), type="text/plain", data_replay=link)
        for link, r in zip(links, replays, strict=True)
        if isinstance(r, Replay)
    ]
    title = f"{result.title}: search and rescue with drone swarms"
    parts = {
        "TITLE": join(title),
        "STYLE": Html(_asset("page.css")),
        "HEAD": _head(result),
        "SECTIONS": join(*(make(result) for make in SECTIONS), panels.card(result, document.run)),
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


def link_names(rows: Sequence[EpisodeRow]) -> list[str]:
    """What a link calls each episode: its id, and where several share it the condition or a number after it."""
    taken: dict[str, int] = {}
    names = []
    for row in rows:
        name = row.episode_id
        if name in taken:
            name = f"{name}~{row.condition}"
        taken[name] = taken.get(name, 0) + 1
        names.append(name if taken[name] == 1 else f"{name}~{taken[name]}")
        taken.setdefault(row.episode_id, 1)
    return names


def _asset(name: str) -> str:
    return files("sar_analysis").joinpath("assets", name).read_text(encoding="utf-8")


def _head(result: ResultBody) -> Html:
    counts = result.counts
    told = f"Tier: {', '.join(result.tiers)}. {counts.valid} valid and {counts.invalid} INVALID missions."
    return join(tag("h1", result.title), tag("p", told, class_="lead"))


def _episodes(rows: Sequence[EpisodeRow], links: Sequence[str], replays: Sequence[Replay | str | None]) -> Html:
    head = [("episode_id", "episode"), ("condition", "condition"), ("seed", "seed"), ("episode", "layout")]
    head += [("valid", "valid"), *((m.key, m.heading) for m in _columns())]
    cells = [
        tag("th", tag("button", label, type="button", data_sort=key), scope="col", aria_sort="none")
        for key, label in head
    ]
    body = [_row(row, link, replay) for row, link, replay in zip(rows, links, replays, strict=True)]
    lost = [f"{r.episode_id}: {why}" for r, why in zip(rows, replays, strict=True) if isinstance(why, str)]
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


def _row(row: EpisodeRow, link: str, replay: Replay | str | None) -> Html:
    opens = isinstance(replay, Replay)
    name = tag("a", row.episode_id, href=f"#episode={_quoted(link)}", data_open=link) if opens else row.episode_id
    why = None if opens else tag("small", NO_BAG if replay is None else "bag cannot be read")
    valid = "yes" if row.valid else f"INVALID: {row.invalid_reason or 'no reason given'}"
    cells = [tag("th", name, why, scope="row")]
    cells += [tag("td", value, data_value=value) for value in (row.condition, row.seed, row.episode)]
    cells.append(tag("td", valid, data_value=int(row.valid)))
    for key in (m.key for m in _columns()):
        value = row.figure(key)
        text = _found(row) if key == "detections" else _cell(key, value)
        cells.append(tag("td", text, data_value=value, class_=_mark(key, value)))
    return tag(
        "tr",
        *cells,
        data_collisions=row.figure("collisions") or 0,
        data_alarms=row.figure("false_alarms") or 0,
        data_invalid=int(not row.valid),
        class_=None if row.valid else "invalid",
    )


def _cell(key: str, value: float | None) -> str:
    if value is None:
        return "never" if key == "time_to_first_detection_s" else "undefined"
    return str(value) if isinstance(value, int) else number(key, value)


def _found(row: EpisodeRow) -> str:
    found = row.figure("detections")
    return "no radio" if found is None else f"{found} of {row.victims}"


def _mark(key: str, value: float | None) -> str | None:
    return "bad" if key in ("collisions", "false_alarms") and value else None


def _quoted(text: str) -> str:
    return quote(text, safe="-._~")
