"""An episode's row once more, slowly and independently: rosbags decodes, plain Python counts, nothing of sar_analysis.

Distances along legs are found by looking at many points of each leg, not in closed form.
"""

from __future__ import annotations

import json
import math
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from mcap.reader import make_reader
from rosbags.highlevel import AnyReader

LOOKS = 10


UNUSED = ("odometry", "setpoint", "detection", "gate", "csi", "coverage", "clock")
"""Topics no metric needs; decoding them would take most of the time."""


def messages(folder: Path) -> dict[str, list[Any]]:
    """The messages of a bag by topic, decoded."""
    found: dict[str, list[Any]] = {}
    with AnyReader([folder]) as reader:
        needed = [c for c in reader.connections if c.topic.rsplit("/", 1)[-1] not in UNUSED]
        for connection, _, raw in reader.messages(connections=needed):
            found.setdefault(connection.topic, []).append(reader.deserialize(raw, connection.msgtype))
    return found


def seconds(stamp: Any) -> float:
    return float(stamp.sec) + float(stamp.nanosec) * 1e-9


def facts(folder: Path) -> dict[str, str]:
    """The bag's own metadata record: settings, hashes, versions."""
    with open(next(folder.glob("*.mcap")), "rb") as stream:
        return next(dict(m.metadata) for m in make_reader(stream).iter_metadata() if m.name == "sar_eval")


def row(folder: Path, told: dict[str, list[Any]] | None = None) -> dict[str, Any]:
    """The metrics of one bag by name, for comparison with EpisodeMetrics."""
    told = messages(folder) if told is None else told
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
        **comfort(
            [m for m in told["/truth/state"] if -1e-6 <= seconds(m.header.stamp) - begin <= last.search_time_s + 1e-6]
        ),
        "failsafe_entries": sum(
            entries([s.failsafe for s in told[f"/uav_{n + 1}/status"]]) for n in range(info.drones)
        ),
    }


def whole_row(folder: Path) -> dict[str, Any]:
    """The same with what only results need: settings, every victim, the last words, the return."""
    told = messages(folder)
    info, last = told["/episode/info"][0], told["/episode/status"][-1]
    begin = next(seconds(s.header.stamp) - s.search_time_s for s in told["/episode/status"] if s.phase == 2)
    found = row(folder, told)
    inside = [m for m in told["/truth/state"] if -1e-6 <= seconds(m.header.stamp) - begin <= last.search_time_s + 1e-6]
    area = (info.area_min.x, info.area_min.y, info.area_max.x, info.area_max.y)
    cells = scanned([[(p.x, p.y) for p in m.position] for m in inside], area)
    seen = victims(told, begin)
    found["victims"] = seen
    found["words"] = last_words(told)
    found["configuration"] = json.loads(facts(folder)["configuration"])
    found["valid"] = last.valid
    found["seed"], found["episode"], found["tier"] = info.seed, info.episode, info.tier
    found["config_sha256"], found["version"] = info.config_sha256, facts(folder)["version"]
    if last.search_time_s <= 240:
        found["coverage_240s"] = found["coverage"] = cells / (
            round((area[2] - area[0]) / 5) * round((area[3] - area[1]) / 5)
        )
    found["episode_return"] = (
        10.0 * cells
        + 50.0 * sum(v["found"] for v in seen)
        + 5.0 * sum(v["views"] for v in seen if v["found"])
        - 2.0 * idle([(seconds(m.header.stamp), [(p.x, p.y) for p in m.position]) for m in inside])
        - 100.0 * found["collisions"]
        - 50.0 * found["geofence_breaches"]
        - 30.0 * sum(empty(told[f"/uav_{n + 1}/status"]) for n in range(info.drones))
    )
    return found


def scanned(track: list[list[tuple[float, float]]], area: tuple[float, float, float, float]) -> int:
    """How many cells came within 14 m of some leg: the foot of the perpendicular, leg by leg and cell by cell."""
    west, south, east, north = area
    seen = set()
    for before, after in pairwise(track):
        for (ax, ay), (bx, by) in zip(before, after, strict=True):
            square = (bx - ax) ** 2 + (by - ay) ** 2
            for i in range(math.floor((min(ax, bx) - west) / 5) - 4, math.floor((max(ax, bx) - west) / 5) + 5):
                for j in range(math.floor((min(ay, by) - south) / 5) - 4, math.floor((max(ay, by) - south) / 5) + 5):
                    x, y = west + 5 * i + 2.5, south + 5 * j + 2.5
                    if (i, j) in seen or not (west < x < east and south < y < north):
                        continue
                    foot = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / square if square > 0 else 0.0
                    foot = min(max(foot, 0.0), 1.0)
                    if math.hypot(x - ax - foot * (bx - ax), y - ay - foot * (by - ay)) <= 14:
                        seen.add((i, j))
    return len(seen)


def idle(track: list[tuple[float, list[tuple[float, float]]]]) -> int:
    """Whole seconds in which a drone flew less than half a metre over ground, ticks cut where a second ends."""
    count, start = 0, track[0][0]
    for n in range(len(track[0][1])):
        way: dict[int, float] = {}
        for (t0, before), (t1, after) in pairwise(track):
            length, t = math.dist(before[n], after[n]), t0
            while t < t1 - 1e-12:
                second = math.floor(t - start + 1e-9)
                end = min(t1, start + second + 1)
                way[second] = way.get(second, 0.0) + length * (end - t) / (t1 - t0)
                t = end
        whole = math.floor(track[-1][0] - start + 1e-9)
        count += sum(way.get(second, 0.0) < 0.5 for second in range(whole))
    return count


def empty(statuses: list[Any]) -> bool:
    """A battery that ran empty before any return: neither failsafe home or landing, nor the phases of coming back."""
    for s in statuses:
        if s.failsafe in (3, 4) or s.phase in (3, 4, 5):
            return False
        if s.battery_fraction <= 0:
            return True
    return False


def entries(states: list[int]) -> int:
    return sum(state != before and state != 0 for before, state in zip([0, *states], states, strict=False))


def comfort(states: list[Any]) -> dict[str, float | None]:
    """Root mean squares of turning about the vertical and of jerk, drone by drone and tick by tick."""
    turns, jerks = [], []
    for m in states:
        for q, w in zip(m.orientation, m.angular_velocity, strict=True):
            up = (2 * (q.x * q.z - q.w * q.y), 2 * (q.y * q.z + q.w * q.x), 1 - 2 * (q.x**2 + q.y**2))
            turns.append(up[0] * w.x + up[1] * w.y + up[2] * w.z)
    for a, b, c in zip(states, states[1:], states[2:], strict=False):
        ta, tb, tc = (seconds(m.header.stamp) for m in (a, b, c))
        for u, v, w in zip(a.velocity, b.velocity, c.velocity, strict=True):
            jerks.append(
                math.sqrt(
                    sum(
                        (((z - y) / (tc - tb) - (y - x) / (tb - ta)) / ((tc - ta) / 2)) ** 2
                        for x, y, z in ((u.x, v.x, w.x), (u.y, v.y, w.y), (u.z, v.z, w.z))
                    )
                )
            )
    return {"yaw_rate_rms_rps": root_mean_square(turns), "jerk_rms_mps3": root_mean_square(jerks)}


def root_mean_square(values: list[float]) -> float | None:
    return math.sqrt(sum(v * v for v in values) / len(values)) if values else None


def victims(told: dict[str, list[Any]], begin: float) -> list[dict[str, Any]]:
    """Every victim with its first and last confident report within 10 m."""
    if "/truth/devices" not in told:
        return []
    devices = told["/truth/devices"][0]
    places = [(p.x, p.y) for p, kind in zip(devices.position, devices.kind, strict=True) if kind == 0]
    seen: list[dict[str, Any]] = [{"found": False} for _ in places]
    for r in told.get("/swarm/reports", []):
        away = [math.hypot(r.position.x - x, r.position.y - y) for x, y in places]
        if not r.confidence > 0.85 or not away or min(away) > 10:
            continue
        victim = seen[away.index(min(away))]
        if not victim["found"]:
            gdop = r.gdop if math.isfinite(r.gdop) else None
            at = max(seconds(r.header.stamp) - begin, 0.0)
            victim.update(found=True, time=at, error=min(away), gdop=gdop, views=r.views)
        victim["last_error"] = min(away)
    return seen


def last_words(told: dict[str, list[Any]]) -> list[tuple[float, bool]]:
    """Confidence of the last report on each transmitter (the first of several at once) and whether it was right."""
    if "/truth/devices" not in told:
        return []
    devices = told["/truth/devices"][0]
    places = [(p.x, p.y) for p, kind in zip(devices.position, devices.kind, strict=True) if kind == 0]
    latest: dict[int, Any] = {}
    for r in told.get("/swarm/reports", []):
        if r.address not in latest or seconds(r.header.stamp) > seconds(latest[r.address].header.stamp):
            latest[r.address] = r
    return [
        (r.confidence, any(math.hypot(r.position.x - x, r.position.y - y) <= 10 for x, y in places))
        for r in latest.values()
    ]


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
