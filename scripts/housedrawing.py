"""Draws docs/images/house.svg: the packages, their rooms, and who may import whom.

python scripts/housedrawing.py
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "house.svg"
WIDTH, HEIGHT = 1000, 690
INK, PAPER, LINE = "#1f2933", "#ffffff", "#7b8794"
FLY, SWARM, WORLD, READ, DATA = "#dbeafe", "#dcfce7", "#fef3c7", "#f3e8ff", "#f1f5f9"


@dataclass(frozen=True)
class Box:
    """A room: its corner, its size, its name and what it does."""

    x: int
    y: int
    w: int
    h: int
    name: str
    duty: str = ""
    fill: str = PAPER

    @property
    def middle(self) -> int:
        return self.x + self.w // 2

    @property
    def foot(self) -> int:
        return self.y + self.h

    def svg(self) -> str:
        lines = [
            f'<rect x="{self.x}" y="{self.y}" width="{self.w}" height="{self.h}" rx="8" fill="{self.fill}" '
            f'stroke="{LINE}"/>'
        ]
        top = self.y + (self.h // 2 + 5 if not self.duty else self.h // 2 - 3)
        lines.append(words(self.middle, top, self.name, bold=True))
        if self.duty:
            lines.append(words(self.middle, top + 18, self.duty, size=12))
        return "\n".join(lines)


def words(x: int, y: int, text: str, size: int = 14, bold: bool = False, anchor: str = "middle") -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def arrow(*points: tuple[int, int], dashed: bool = False) -> str:
    path = " ".join(f"{x},{y}" for x, y in points)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.5"{dash} marker-end="url(#head)"/>'


def frame(x: int, y: int, w: int, h: int, title: str, fill: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="12" fill="{fill}" stroke="{LINE}"/>\n' + words(
        x + 14, y + 24, title, size=15, bold=True, anchor="start"
    )


def drawing() -> str:
    """The whole picture as SVG text."""
    cli = Box(40, 60, 580, 44, "cli", "parse, call one function, print")
    upper = [
        Box(40, 134, 133, 52, "studies", "verbs that study"),
        Box(189, 134, 133, 52, "campaign", "many missions"),
        Box(338, 134, 133, 52, "stage1", "kinematic stage"),
        Box(487, 134, 133, 52, "ros", "nodes of a graph"),
    ]
    episode = Box(40, 216, 580, 52, "episode", "the tick loop: operator, swarm, sensing, score, outcome")
    lower = [
        Box(40, 298, 180, 52, "px4 · sitl", "autopilots on MAVLink"),
        Box(240, 298, 180, 52, "backends", "one door to every tier"),
        Box(440, 298, 180, 52, "bag", "bytes of a rosbag2"),
    ]
    scenario = Box(40, 380, 580, 52, "scenario", "YAML to an episode, checked")
    sim = Box(20, 480, 300, 56, "sar_sim", "world · vehicle · radio · judging (the truth)", WORLD)
    swarm = Box(340, 480, 300, 56, "sar_swarm", "piloting · planning · sensing (no truth)", SWARM)
    core = Box(20, 566, 960, 44, "sar_core", "frames, random streams, geometry, mailboxes, the return, errors", DATA)
    data = Box(20, 636, 620, 40, "worlds · configs · px4_params: the only descriptions of what is flown", "", DATA)
    gazebo = Box(680, 480, 300, 56, "sar_gazebo", "registers the gazebo tier by entry point", FLY)
    rooms = [
        Box(710, 60, 240, 44, "render", "pages, tables, figures, replay"),
        Box(710, 122, 240, 44, "results · prereg", "one document, claims held to it"),
        Box(710, 184, 240, 44, "stats · stage1", "intervals, median seeds"),
        Box(710, 246, 240, 44, "metrics", "one row per episode"),
        Box(710, 308, 240, 44, "bags", "messages as columns"),
    ]
    recording = Box(710, 396, 240, 44, "rosbag2 (MCAP) and records", "", DATA)
    parts = [
        frame(20, 20, 620, 430, "sar_eval", FLY),
        frame(680, 20, 300, 350, "sar_analysis", READ),
        *(box.svg() for box in (cli, *upper, episode, *lower, scenario, sim, swarm, core, data, gazebo)),
        *(box.svg() for box in (*rooms, recording)),
        *(arrow((box.middle, cli.foot), (box.middle, box.y)) for box in upper),
        *(arrow((box.middle, box.foot), (box.middle, episode.y)) for box in upper),
        *(arrow((box.middle, episode.foot), (box.middle, box.y)) for box in lower),
        *(arrow((box.middle, box.foot), (box.middle, scenario.y)) for box in lower),
        arrow((sim.middle, scenario.foot), (sim.middle, sim.y)),
        arrow((swarm.middle, scenario.foot), (swarm.middle, swarm.y)),
        *(arrow((box.middle, box.foot), (box.middle, core.y)) for box in (sim, swarm, gazebo)),
        *(arrow((a.middle, a.foot), (b.middle, b.y)) for a, b in pairwise(rooms)),
        arrow((640, 82), (678, 82)),
        arrow((gazebo.x, 508), (660, 508), (660, 436), (642, 436)),
        arrow((620, 324), (668, 324), (668, 418), (recording.x - 2, 418), dashed=True),
        words(672, 411, "write", size=12, anchor="start"),
        arrow((recording.middle, recording.y), (recording.middle, 354), dashed=True),
        words(842, 382, "read", size=12, anchor="start"),
        arrow((data.x, 656), (8, 656), (8, 406), (scenario.x - 2, 406), dashed=True),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, sans-serif" fill="{INK}" role="img" '
        'aria-label="Rooms of the packages; arrows show who may import whom">'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>'
    )
    paper = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>'
    return "\n".join([head, marker, paper, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
