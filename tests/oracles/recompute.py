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
CONFIDENT = 0.85
NEAR_M = 10.0
RIGHT, DISPLACED, DECOY = 1, 2, 3
KINDS = ("victim", "rescuer", "access_point", "passer_by", "interference")

UNUSED = ("odometry", "setpoint", "gate", "csi", "coverage", "clock")
"""Topics no metric needs; decoding them would take most of the time."""


OF_REPORTS = ("reports", "report", "devices", "detection")
"""All that judging reports takes, with /episode/status."""


def messages(folder: Path, reports_only: bool = False) -> dict[str, list[Any]]:
    """The messages of a bag by topic, decoded."""
    found: dict[str, list[Any]] = {}
    with AnyReader([folder]) as reader:
        needed = [c for c in reader.connections if c.topic.rsplit("/", 1)[-1] not in UNUSED]
        if reports_only:
            needed = [c for c in needed if c.topic == "/episode/status" or c.topic.rsplit("/", 1)[-1] in OF_REPORTS]
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
        **reports(told),
        **comfort(
            [m for m in told["/truth/state"] if -1e-6 <= seconds(m.header.stamp) - begin <= last.search_time_s + 1e-6]
        ),
        "failsafe_entries": sum(
            entries([s.failsafe for s in told[f"/uav_{n + 1}/status"]]) for n in range(info.drones)
        ),
    }


def whole_row(folder: Path) -> dict[str, Any]:
    """The same with what only results need: settings, every victim, what was said last, the return."""
    told = messages(folder)
    info, last = told["/episode/info"][0], told["/episode/status"][-1]
    begin = next(seconds(s.header.stamp) - s.search_time_s for s in told["/episode/status"] if s.phase == 2)
    found = row(folder, told)
    inside = [m for m in told["/truth/state"] if -1e-6 <= seconds(m.header.stamp) - begin <= last.search_time_s + 1e-6]
    area = (info.area_min.x, info.area_min.y, info.area_max.x, info.area_max.y)
    cells = scanned([[(p.x, p.y) for p in m.position] for m in inside], area)
    everything = devices(told)
    seen = [device for device in everything if device["victim"]]
    found["victims"] = seen
    found["decoys"] = [device for device in everything if not device["victim"]]
    found["tracks"] = tracks(told)
    found["upstream"] = upstream(told)
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


def span(told: dict[str, list[Any]]) -> tuple[int, int]:
    """Begin and end of the search in nanoseconds of simulation time, by the referee's search clock."""
    first = next(s for s in told["/episode/status"] if s.phase == 2)
    begin = nanoseconds(first) - round(first.search_time_s * 1e9)
    return begin, begin + round(max(s.search_time_s for s in told["/episode/status"]) * 1e9)


def nanoseconds(message: Any) -> int:
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec)


def owners(told: dict[str, list[Any]]) -> dict[int, tuple[int, float, float]]:
    """Number from 1 and place of the victim that carries it, by the address of a device."""
    devices = told["/truth/devices"][0]
    carried = [k for k, kind in enumerate(devices.kind) if kind == 0]
    return {
        int(devices.address[k]): (number, devices.position[k].x, devices.position[k].y)
        for number, k in enumerate(carried, start=1)
    }


def miss(report: Any, owned: dict[int, tuple[int, float, float]]) -> float | None:
    """Over ground from the reported place to the victim whose device it is; None for anybody else's."""
    if report.address not in owned:
        return None
    _, x, y = owned[report.address]
    return math.hypot(report.position.x - x, report.position.y - y)


def searched(told: dict[str, list[Any]]) -> list[tuple[float, Any]]:
    """Search time and report of all that counts: the last of each transmitter from before stands when search begins.

    Those from before come in the order of their time, of one time by address.
    """
    begin, end = span(told)
    standing: dict[int, Any] = {}
    inside = []
    for r in told.get("/swarm/reports", []):
        if nanoseconds(r) < begin:
            standing[r.address] = r
        elif nanoseconds(r) <= end:
            inside.append(((nanoseconds(r) - begin) * 1e-9, r))
    return [(0.0, r) for r in sorted(standing.values(), key=lambda r: (nanoseconds(r), r.address))] + inside


def number_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def verdicts(told: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """One entry for each confident report of the search, in order: an issue, or an update of one."""
    owned, issued, entries = owners(told), set(), []
    for at, r in searched(told):
        if r.confidence > CONFIDENT:
            error = miss(r, owned)
            entries.append(
                {
                    "time": at,
                    "update": r.address in issued,
                    "verdict": DECOY if error is None else RIGHT if error <= NEAR_M else DISPLACED,
                    "uav": r.uav,
                    "address": int(r.address),
                    "victim": owned[r.address][0] if r.address in owned else 0,
                    "error": error,
                    "position": (r.position.x, r.position.y, r.position.z),
                    "confidence": r.confidence,
                    "path_gdop": number_or_none(r.path_gdop),
                    "gdop": number_or_none(r.constellation_gdop),
                    "information_dop": number_or_none(r.information_dop_m),
                    "views": r.views,
                }
            )
            issued.add(r.address)
    return entries


def heard(told: dict[str, list[Any]]) -> dict[int, float]:
    """Search time at which any drone first heard a transmitter inside the search, by address."""
    begin, end = span(told)
    first: dict[int, int] = {}
    for topic, own in told.items():
        for m in own if topic.endswith("/detection") else ():
            if begin <= nanoseconds(m) <= end:
                first[m.address] = min(nanoseconds(m), first.get(m.address, end))
    return {address: (at - begin) * 1e-9 for address, at in first.items()}


def devices(told: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Every device in the world, victims' and others': heard, issued, and what became of it."""
    if "/truth/devices" not in told:
        return []
    truth, owned, ears, judged = told["/truth/devices"][0], owners(told), heard(told), verdicts(told)
    begin, end = span(told)
    rows = []
    for address, kind, place, listed in zip(truth.address, truth.kind, truth.position, truth.listed, strict=True):
        own = [v for v in judged if v["address"] == address]
        settled = None
        for v in reversed(own):
            if v["verdict"] != RIGHT:
                break
            settled = v["time"]
        rows.append(
            {
                "address": int(address),
                "kind": KINDS[kind],
                "place": (place.x, place.y),
                "victim": owned[address][0] if address in owned else 0,
                "listed": bool(listed),
                "heard": ears.get(address),
                "exposed": address in ears or bool(own),
                "issued": own[0]["time"] if own else None,
                "found": bool(own) and own[0]["verdict"] == RIGHT,
                "verdict": own[0]["verdict"] if own else None,
                "time": own[0]["time"] if own and own[0]["verdict"] == RIGHT else None,
                "error": own[0]["error"] if own else None,
                "confidence": own[0]["confidence"] if own else None,
                "gdop": own[0]["gdop"] if own else None,
                "path_gdop": own[0]["path_gdop"] if own else None,
                "information_dop": own[0]["information_dop"] if own else None,
                "views": own[0]["views"] if own else None,
                "last_error": own[-1]["error"] if own else None,
                "settled": settled,
                "fixes": fixes(told, address, (end - begin) * 1e-9) if address in owned else [],
            }
        )
    return rows


def victims(told: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [row for row in devices(told) if row["victim"]]


def fixes(told: dict[str, list[Any]], address: int, end_s: float) -> list[dict[str, Any]]:
    """What the latest report of a victim's device said at each whole 30 s of search, where there was one."""
    owned, own = owners(told), [(at, r) for at, r in searched(told) if r.address == address]
    found = []
    for mark in range(30, math.floor(end_s + 1e-9) + 1, 30):
        before = [r for at, r in own if at <= mark + 1e-9]
        if before:
            r = before[-1]
            found.append(
                {
                    "mark": float(mark),
                    "age": mark - max(at for at, r in own if at <= mark + 1e-9),
                    "error": miss(r, owned),
                    "confidence": r.confidence,
                    "path_gdop": number_or_none(r.path_gdop),
                    "gdop": number_or_none(r.constellation_gdop),
                    "information_dop": number_or_none(r.information_dop_m),
                    "views": r.views,
                }
            )
    return found


def tracks(told: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """First and last report of each transmitter in the search, whatever its confidence."""
    if "/truth/devices" not in told:
        return []
    owned, own = owners(told), searched(told)
    found = []
    for address in dict.fromkeys(int(r.address) for _, r in own):
        mine = [(at, r) for at, r in own if r.address == address]
        for last, (at, r) in ((False, mine[0]), (True, mine[-1])):
            found.append(
                {
                    "address": address,
                    "last": last,
                    "time": at,
                    "confidence": r.confidence,
                    "error": miss(r, owned),
                    "path_gdop": number_or_none(r.path_gdop),
                    "gdop": number_or_none(r.constellation_gdop),
                    "information_dop": number_or_none(r.information_dop_m),
                }
            )
    return found


def upstream(told: dict[str, list[Any]]) -> dict[str, Any] | None:
    """The rules of ADR-149: no search, no distance, time from the first tick."""
    if "/truth/devices" not in told:
        return None
    owned, first = owners(told), {}
    for r in told.get("/swarm/reports", []):
        if r.confidence > CONFIDENT:
            first.setdefault(int(r.address), r)
    ours = sorted((nanoseconds(r), address) for address, r in first.items() if address in owned)
    return {
        "confident": bool(first),
        "detected": bool(ours),
        "time": ours[0][0] * 1e-9 if ours else None,
        "errors": [miss(first[address], owned) for _, address in ours],
        "gdop": [number_or_none(first[address].constellation_gdop) for _, address in ours],
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


def reports(told: dict[str, list[Any]]) -> dict[str, Any]:
    """The scalars about issues, of one time by address; nothing where the episode had no radio."""
    names = ("issues", "detections", "displaced", "false_alarms")
    if "/truth/devices" not in told:
        return dict.fromkeys(
            (*names, "time_to_first_detection_s", "localization_error_m", "gdop"),
        )
    issues = sorted((v for v in verdicts(told) if not v["update"]), key=lambda v: (v["time"], v["address"]))
    counts = [len(issues), *(sum(v["verdict"] == kind for v in issues) for kind in (RIGHT, DISPLACED, DECOY))]
    first = next((v for v in issues if v["verdict"] != DECOY), None)
    return {
        **dict(zip(names, counts, strict=True)),
        "time_to_first_detection_s": next((v["time"] for v in issues if v["verdict"] == RIGHT), None),
        "localization_error_m": first and first["error"],
        "gdop": first and first["gdop"],
    }
