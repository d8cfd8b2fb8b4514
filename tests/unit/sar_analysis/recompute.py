"""An episode's row once more, slowly and independently: rosbags decodes, plain Python counts, nothing of sar_analysis.

Distances along legs are found by looking at many points of each leg, not in closed form.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from rosbags.highlevel import AnyReader

LOOKS = 10


def messages(folder: Path) -> dict[str, list[Any]]:
    """Every message of a bag by topic, decoded."""
    found: dict[str, list[Any]] = {}
    with AnyReader([folder]) as reader:
        for connection, _, raw in reader.messages():
            found.setdefault(connection.topic, []).append(reader.deserialize(raw, connection.msgtype))
    return found


def seconds(stamp: Any) -> float:
    return float(stamp.sec) + float(stamp.nanosec) * 1e-9


def row(folder: Path) -> dict[str, Any]:
    """The metrics of one bag by name, for comparison with EpisodeMetrics."""
    told = messages(folder)
    info, last = told["/episode/info"][0], told["/episode/status"][-1]
    truth = [(seconds(m.header.stamp), [(p.x, p.y, p.z) for p in m.position]) for m in told["/truth/state"]]
    begin = next(seconds(s.header.stamp) - s.search_time_s for s in told["/episode/status"] if s.phase == 2)
    search = [(t - begin, p) for t, p in truth if -1e-6 <= t - begin <= last.search_time_s + 1e-6]
    area = (info.area_min.x, info.area_min.y, info.area_max.x, info.area_max.y)
    first, overlap = scan(search, area)
    cells = round((area[2] - area[0]) / 5) * round((area[3] - area[1]) / 5)
    times = sorted(first.values())
    needed = math.ceil(0.95 * cells)
    return {
        "episode_id": info.episode_id,
        "flight_time_s": truth[-1][0],
        "flight_hours": truth[-1][0] * info.drones / 3600,
        "search_time_s": last.search_time_s,
        "coverage": len(times) / cells,
        "coverage_240s": sum(t <= 240 for t in times) / cells,
        "time_to_95_s": times[needed - 1] if len(times) >= needed else None,
        "overlap_ratio": overlap,
        "min_separation_m": separation([p for _, p in truth]),
        "path_m": sum(math.dist(a, b) for n in range(info.drones) for a, b in legs([p for _, p in truth], n)),
        "energy_batteries": sum(drop(told[f"/uav_{n + 1}/status"]) for n in range(info.drones)),
        **contacts(told.get("/events/collision", [])),
        **reports(told, begin),
    }


def legs(positions: list[Any], n: int) -> list[tuple[Any, Any]]:
    return [(a[n], b[n]) for a, b in pairwise(positions)]


def drop(statuses: list[Any]) -> float:
    return sum(max(0.0, a.battery_fraction - b.battery_fraction) for a, b in pairwise(statuses))


def separation(positions: list[Any]) -> float | None:
    """Least distance of two drones over the points of all legs."""
    best = None
    for before, after in pairwise(positions):
        for one, other in combinations(range(len(before)), 2):
            for k in range(LOOKS + 1):
                s = k / LOOKS
                d = math.dist(
                    [a + s * (b - a) for a, b in zip(before[one], after[one], strict=True)],
                    [a + s * (b - a) for a, b in zip(before[other], after[other], strict=True)],
                )
                best = d if best is None else min(best, d)
    return best


def scan(
    search: list[Any], area: tuple[float, float, float, float]
) -> tuple[dict[tuple[int, int], float], float | None]:
    """Search time of each cell's first scan, and the overlap ratio, by a book of passes per drone and cell."""
    west, south, east, north = area
    first: dict[tuple[int, int], float] = {}
    books: list[dict[tuple[int, int], tuple[float, bool]]] = [{} for _ in search[0][1]]
    flown, wasted = [0.0] * len(books), 0.0
    for (t0, before), (t1, after) in pairwise(search):
        for n, book in enumerate(books):
            (ax, ay, _), (bx, by, _) = before[n], after[n]
            piece = math.hypot(bx - ax, by - ay) / LOOKS
            for k in range(LOOKS):
                s = (k + 0.5) / LOOKS
                x, y, t = ax + s * (bx - ax), ay + s * (by - ay), t0 + s * (t1 - t0)
                column, line = math.floor((x - west) / 5), math.floor((y - south) / 5)
                for i in range(column - 5, column + 6):
                    for j in range(line - 5, line + 6):
                        cx, cy = west + 5 * i + 2.5, south + 5 * j + 2.5
                        if not (west < cx < east and south < cy < north):
                            continue
                        d = math.hypot(cx - x, cy - y)
                        if d > 19:
                            book.pop((i, j), None)
                        elif d <= 14 and (i, j) not in book:
                            book[i, j] = (flown[n], first.get((i, j), math.inf) < t)
                            first[i, j] = min(t, first.get((i, j), math.inf))
                flown[n] += piece
                beneath = book.get((column, line))
                if beneath is not None and (beneath[1] or flown[n] - beneath[0] > 28):
                    wasted += piece
    return first, wasted / sum(flown) if sum(flown) > 0 else None


def contacts(events: list[Any]) -> dict[str, int]:
    kinds = {e.event_id: e.kind for e in events}
    count = [list(kinds.values()).count(kind) for kind in range(6)]
    return {
        "collisions": count[1] + count[2] + count[3],
        "collisions_drone_drone": count[1],
        "collisions_drone_obstacle": count[2],
        "collisions_drone_ground": count[3],
        "geofence_breaches": count[4],
        "near_misses": count[5],
    }


def reports(told: dict[str, list[Any]], begin: float) -> dict[str, Any]:
    """Detections and false alarms; nothing where the episode had no radio."""
    if "/truth/devices" not in told:
        return {"detections": None, "false_alarms": None}
    devices = told["/truth/devices"][0]
    victims = [(p.x, p.y) for p, kind in zip(devices.position, devices.kind, strict=True) if kind == 0]
    found: dict[int, tuple[float, float, float]] = {}
    alarms = set()
    for r in told.get("/swarm/reports", []):
        if not r.confidence > 0.85:
            continue
        away = [math.hypot(r.position.x - x, r.position.y - y) for x, y in victims]
        if away and min(away) <= 10:
            at = max(seconds(r.header.stamp) - begin, 0.0)
            found.setdefault(away.index(min(away)), (at, min(away), r.gdop))
        else:
            alarms.add(r.address)
    earliest = min(found.values(), default=None)
    return {
        "detections": len(found),
        "false_alarms": len(alarms),
        "time_to_first_detection_s": earliest[0] if earliest else None,
        "localization_error_m": earliest[1] if earliest else None,
        "gdop": earliest[2] if earliest and math.isfinite(earliest[2]) else None,
    }
