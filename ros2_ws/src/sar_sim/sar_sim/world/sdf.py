"""SDF as a tree of elements that remember their lines, and the few readers a world needs: numbers, poses, shapes.

What is wrong goes to a ``Report``; a reader then returns None, so that a linter can go on and a loader can stop.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from sar_core.errors import InputError

Pose = tuple[float, float, float, float]

SAR_NAMESPACE = "https://sar-eval.invalid/sdf"
MAX_FILE_BYTES = 64 * 2**20


@dataclass
class Node:
    """One XML element that remembers its line; elements of our namespace are tagged ``sar:...``."""

    tag: str
    attributes: dict[str, str]
    line: int
    where: str
    text: str = ""
    children: list[Node] = field(default_factory=list)

    def all(self, tag: str) -> list[Node]:
        return [c for c in self.children if c.tag == tag]

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()


Report = Callable[[Node, str], None]


def parse_sdf(path: Path) -> tuple[Node, str]:
    """The file's element tree and the sha256 of its bytes. DOCTYPE and entities are refused: a world needs neither."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path}: {path.stat().st_size} bytes; a world file may have {MAX_FILE_BYTES}")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read world file: {error.strerror}") from None
    parser = expat.ParserCreate(namespace_separator="|")
    top = Node("", {}, 0, "")
    stack = [top]

    def local(name: str) -> str:
        uri, bar, tag = name.rpartition("|")
        return f"{'sar' if uri == SAR_NAMESPACE else uri}:{tag}" if bar else tag

    def start(name: str, attributes: dict[str, str]) -> None:
        tag = local(name)
        label = f"{tag} '{attributes['name']}'" if "name" in attributes else tag
        outer = stack[-1].where
        where = label if outer in ("", "sdf") else f"{outer}/{label}"
        node = Node(tag, {local(k): v for k, v in attributes.items()}, parser.CurrentLineNumber, where)
        stack[-1].children.append(node)
        stack.append(node)

    def end(_: str) -> None:
        stack.pop()

    def characters(text: str) -> None:
        stack[-1].text += text

    def forbid(*_: object) -> None:
        raise InputError(f"{path}:{parser.CurrentLineNumber}: DOCTYPE and entities are not allowed in a world")

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = forbid
    parser.EntityDeclHandler = forbid
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(f"{path}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}") from None
    return top.children[0], hashlib.sha256(data).hexdigest()


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)


def numbers(text: str, count: int | None, node: Node, what: str, report: Report) -> tuple[float, ...] | None:
    """The numbers in a text, or None after reporting what is wrong; count None takes any amount."""
    words = text.split()
    bad = [w for w in words if not _NUMBER.match(w) or not math.isfinite(float(w))]
    if bad:
        report(node, f"{what} has {bad[0]!r}, which is not a finite number")
        return None
    if count is not None and len(words) != count:
        report(node, f"{what} has {len(words)} values, allowed is exactly {count}")
        return None
    return tuple(float(w) for w in words)


def compose(outer: Pose, inner: Pose) -> Pose:
    """The pose (x, y, z, yaw) of a frame given in a frame that is itself turned about z only."""
    x, y, z, yaw = outer
    c, s = math.cos(yaw), math.sin(yaw)
    return x + c * inner[0] - s * inner[1], y + s * inner[0] + c * inner[1], z + inner[2], yaw + inner[3]


def read_pose(node: Node, report: Report) -> Pose | None:
    """An element's own <pose> as (x, y, z, yaw); absent or empty means identity."""
    poses = node.all("pose")
    if len(poses) > 1:
        report(node, f"<pose> appears {len(poses)} times, allowed is once")
        return None
    if not poses:
        return 0.0, 0.0, 0.0, 0.0
    pose = poses[0]
    if pose.attributes:
        key = next(iter(pose.attributes))
        report(pose, f"attribute {key!r} is not supported: a pose is relative to its parent, in metres and radians")
        return None
    values = numbers(pose.text, 6, pose, "pose", report) if pose.text.strip() else (0.0,) * 6
    if values is None:
        return None
    x, y, z, roll, pitch, yaw = values
    if roll != 0.0 or pitch != 0.0:
        report(pose, f"roll {roll:g} and pitch {pitch:g}: only 0 is allowed, obstacles stand upright and turn about z")
        return None
    return x, y, z, yaw


def read_shape(owner: Node, report: Report) -> tuple[str, tuple[float, ...]] | None:
    """A collision's or visual's geometry: ("box", sizes), ("cylinder", (radius, length)) or ("plane", ())."""
    holders = owner.all("geometry")
    shapes = holders[0].children if len(holders) == 1 else []
    if len(shapes) != 1 or shapes[0].tag not in ("box", "cylinder", "plane"):
        found = ", ".join(s.tag for s in shapes) or "none"
        report(owner, f"geometry is {found}; allowed is exactly one of box, cylinder, plane")
        return None
    shape = shapes[0]
    if shape.tag == "plane":
        normal = values_of(shape, "normal", 3, report)
        if normal is not None and normal != (0.0, 0.0, 1.0):
            report(shape, "only a horizontal plane (normal 0 0 1) is allowed")
        return None if normal is None else ("plane", ())
    wanted = {"size": 3} if shape.tag == "box" else {"radius": 1, "length": 1}
    parts = [values_of(shape, tag, count, report) for tag, count in wanted.items()]
    sizes = tuple(v for part in parts if part is not None for v in part)
    if len(sizes) != sum(wanted.values()):
        return None
    if min(sizes) <= 0.0:
        report(shape, f"size {min(sizes):g} is not positive")
        return None
    return shape.tag, sizes


def child_of(node: Node | None, tag: str, report: Report) -> Node | None:
    """The single child of that tag, or None after reporting its absence or repetition."""
    if node is None:
        return None
    found = node.all(tag)
    if not found:
        report(node, f"<{tag}> is missing")
    elif len(found) > 1:
        report(node, f"<{tag}> appears {len(found)} times, allowed is once")
    return found[0] if len(found) == 1 else None


def values_of(node: Node | None, tag: str, count: int, report: Report) -> tuple[float, ...] | None:
    child = child_of(node, tag, report)
    return None if child is None else numbers(child.text, count, child, tag, report)


def attribute_of(node: Node, key: str, count: int, report: Report) -> tuple[float, ...] | None:
    if key not in node.attributes:
        report(node, f"attribute {key!r} is missing")
        return None
    return numbers(node.attributes[key], count, node, key, report)
