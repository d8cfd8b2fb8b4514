"""The radio channel beside a ray tracer, Sionna RT, link by link.

    python -m tests.oracles.raytracer --compare
    python -m tests.oracles.raytracer --trace village

The first prints the table of docs/sensing.md from the answers in `raytraced`. The second makes a world's answers anew:
it takes the extra `raytracer`, LLVM 19 (Debian's libllvm19, with DRJIT_LIBLLVM_PATH on its libLLVM.so.19.1: older ones
are refused or abort), 5 GB of memory and three seconds of CPU per device.

Both sides yield paths (complex amplitude, length, direction it comes from), and their powers are summed: single frames
would differ by the INSET_M that meshes are drawn in.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.radio import CARRIER_HZ, LIGHT_MPS
from sar_sim.radio.channel import PATH, RadioScene, find_paths, make_scene, ray
from sar_sim.radio.radioconfig import load_radio
from tests.oracles.raytracerscene import ONE_WALL, Links, blocked, make_links, world_named, write_scene

Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = Path(__file__).with_name("raytraced")
WORLDS = ("open_field", "village", "collapsed_block")
SPECULAR, DIFFRACTION = 1, 8
FIELDS = ("sum_db", "straight_db", "echo_db", "unbent_db", "delay_ns", "paths", "off_deg")
"""Gain between the antennas by all paths, by the straight one through what lies in the way, by single upright mirrors,
by all that bend round no edge; delay spread and number of paths down to 30 dB below the strongest; angle between the
strongest and the device. nan: no such path."""
DEPTH = 5
RAYS = 1_000_000
TABLE_PLACES = 30_000_000
"""Candidates whose hashes collide are dropped: with Sionna's default of a million places 12 % of the village's links
in sight lose their ground echo."""

BEFORE_DB = {
    ("open_field", "line of sight"): 0.0,
    ("village", "line of sight"): 0.2,
    ("village", "blocked outdoors"): 5.57,
    ("village", "indoors"): 3.52,
    ("collapsed_block", "line of sight"): 0.29,
    ("collapsed_block", "blocked outdoors"): 7.4,
    ("collapsed_block", "indoors"): 7.06,
}
"""Mean absolute error on the same links of the channel as of commit e8477e4: P.2040-1's constants, walls that only
absorb and echo alike at every tilt, no edges."""


class Paths(NamedTuple):
    """The paths of one link [P]; towards: where each comes from, seen from the drone."""

    gain: NDArray[np.complex128]
    length_m: Floats
    towards: Floats  # [P, 3]
    mirrors: NDArray[np.int64]
    edges: NDArray[np.int64]


class Answers(NamedTuple):
    """What is kept of a world: its links and FIELDS of each."""

    links: Links
    blocked: NDArray[np.bool_]  # [T, R]
    table: Floats  # [T, R, FIELDS]


def describe(paths: Paths, device: Floats, drone: Floats) -> list[float]:
    """FIELDS of one link."""
    power = np.abs(paths.gain) ** 2
    unbent = paths.edges == 0
    plan_m = np.hypot(*(device - drone)[:2])
    upright = paths.length_m * np.hypot(*paths.towards[:, :2].T) > plan_m + 0.01
    kinds = (power >= 0.0, unbent & (paths.mirrors == 0), unbent & (paths.mirrors == 1) & upright, unbent)
    sums = [10.0 * math.log10(power[kind].sum()) if kind.any() else math.nan for kind in kinds]
    if not len(power):
        return [*sums, math.nan, 0.0, math.nan]
    keep = power > 1e-3 * power.max()
    mean = np.average(paths.length_m[keep], weights=power[keep])
    spread = math.sqrt(np.average((paths.length_m[keep] - mean) ** 2, weights=power[keep])) / LIGHT_MPS * 1e9
    arrow = (device - drone) / np.linalg.norm(device - drone)
    off = math.degrees(math.acos(np.clip(paths.towards[np.argmax(power)] @ arrow, -1.0, 1.0)))
    return [*sums, spread, float(keep.sum()), off]


def our_paths(scene: RadioScene, device: Floats, drone: Floats) -> Paths:
    """As the receiver finds them."""
    rows = np.zeros((2 + scene.max_reflections, PATH))
    count = find_paths(scene, *map(float, device), *map(float, drone), rows)
    rays = np.array([ray(row, *map(float, device), *map(float, drone)) for row in rows[:count]])
    mirrors = (rows[:count, 7] > 0.0).astype(np.int64)
    return Paths(rays[:, 4] + 1j * rays[:, 5], rays[:, 0], rays[:, 1:4], mirrors, np.zeros_like(mirrors))


def our_table(name: str, links: Links) -> Floats:
    """FIELDS of our channel [T, R, FIELDS]."""
    scene = make_scene(world_named(name), load_radio(ROOT / "configs/radio/open_ground.yaml"))
    rows = zip(links.devices, links.drones, strict=True)
    return np.array([[describe(our_paths(scene, p, q), p, q) for q in drones] for p, drones in rows])


class Tracer:
    """A Sionna RT scene with one transmitter and R receivers of vertically polarised antennas, equal all round."""

    def __init__(self, name: str, folder: Path, receivers: int) -> None:
        from sionna.rt import PathSolver, PlanarArray, Receiver, Transmitter, load_scene
        from sionna.rt.path_solvers.sb_candidate_generator import SBCandidateGenerator
        from sionna.rt.radio_materials.itu import ITU_MATERIALS_PROPERTIES

        SBCandidateGenerator.MIN_SPEC_COUNT_SIZE = TABLE_PLACES
        f_ghz = CARRIER_HZ * 1e-9
        table = {}
        for ours, theirs in (("brick", "brick"), ("concrete", "concrete"), ("ground", "medium_dry_ground")):
            a, b, c, d = next(iter(ITU_MATERIALS_PROPERTIES[theirs].values()))
            table[ours] = (a * f_ghz**b, c * f_ghz**d)
        self._scene = load_scene(str(write_scene(world_named(name), folder, table)))
        self._scene.frequency = CARRIER_HZ
        array = PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
        self._scene.tx_array = self._scene.rx_array = array
        self._scene.add(Transmitter("device", position=[0.0, 0.0, 1.0]))
        for k in range(receivers):
            self._scene.add(Receiver(f"drone{k}", position=[float(k), 0.0, 30.0]))
        self._solver = PathSolver(deterministic=True)

    def paths(self, device: Floats, drones: Floats) -> Iterator[Paths]:
        """The paths to each drone."""
        self._scene.get("device").position = [float(v) for v in device]
        for k, drone in enumerate(drones):
            self._scene.get(f"drone{k}").position = [float(v) for v in drone]
        found: Any = self._solver(
            self._scene, max_depth=DEPTH, samples_per_src=RAYS, diffraction=True, refraction=True, seed=1
        )
        gain = (np.array(found.a[0]) + 1j * np.array(found.a[1]))[:, 0, 0, 0]
        valid = np.array(found.valid)[:, 0].reshape(gain.shape)
        length = np.array(found.tau)[:, 0] * LIGHT_MPS
        theta, phi = np.array(found.theta_r)[:, 0], np.array(found.phi_r)[:, 0]
        towards = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=-1)
        kinds = np.array(found.interactions)[:, :, 0]
        for k in range(len(drones)):
            ok = valid[k]
            what = kinds[:, k, ok]
            mirrors, edges = (what == SPECULAR).sum(0), (what == DIFFRACTION).sum(0)
            yield Paths(gain[k, ok], length[k, ok], towards[k, ok], mirrors, edges)


def trace(name: str) -> Answers:
    """A world's links through Sionna RT."""
    world = world_named(name)
    links = make_links(name, world)
    began = time.monotonic()
    table = np.zeros((*links.drones.shape[:2], len(FIELDS)))
    with tempfile.TemporaryDirectory() as folder:
        tracer = Tracer(name, Path(folder), links.drones.shape[1])
        for t, (device, drones) in enumerate(zip(links.devices, links.drones, strict=True)):
            found = zip(tracer.paths(device, drones), drones, strict=True)
            table[t] = [describe(paths, device, drone) for paths, drone in found]
            print(f"{name}: device {t + 1} of {len(table)}, {time.monotonic() - began:.0f} s", flush=True)
    return Answers(links, blocked(world, links), table)


def write_answers(path: Path, answers: Answers) -> None:
    np.savez_compressed(
        path,
        devices=answers.links.devices,
        drones=answers.links.drones,
        indoors=answers.links.indoors,
        blocked=answers.blocked,
        table=answers.table.astype(np.float32),
    )


def read_answers(name: str) -> Answers:
    data = np.load(ANSWERS / f"{name}.npz")
    return Answers(Links(data["devices"], data["drones"], data["indoors"]), data["blocked"], data["table"])


def classes(answers: Answers) -> dict[str, NDArray[np.bool_]]:
    """Links [T, R] of each class."""
    indoors = np.broadcast_to(answers.links.indoors[:, None], answers.blocked.shape)
    return {
        "line of sight": ~answers.blocked,
        "blocked outdoors": answers.blocked & ~indoors,
        "indoors": answers.blocked & indoors,
    }


def difference_db(ours: Floats, answers: Answers, field: str = "sum_db") -> Floats:
    """Ours minus Sionna's [T, R] in one of FIELDS; what Sionna finds no path for at all is left out as nan."""
    k = FIELDS.index(field)
    return np.asarray(ours[..., k] - answers.table[..., k])


def compare() -> str:
    """The table of docs/sensing.md."""
    off = FIELDS.index("off_deg")
    lines = [
        "| world | links | n | ours minus Sionna, dB: 10 / 50 / 90 % | mean absolute error, dB: before → now "
        "| strongest path > 10° off, ours / Sionna |",
        "|---|---|---|---|---|---|",
    ]
    for name in WORLDS:
        answers = read_answers(name)
        ours = our_table(name, answers.links)
        error = difference_db(ours, answers)
        for label, mask in classes(answers).items():
            if not mask.any():
                continue
            # Adding nought turns a rounded -0.0 into 0.0.
            low, middle, high = np.round(np.nanquantile(error[mask], (0.1, 0.5, 0.9)), 1) + 0.0
            shares = [f"{100.0 * np.mean(table[mask][:, off] > 10.0):.0f} %" for table in (ours, answers.table)]
            lines.append(
                f"| {name.replace('_', ' ')} | {label} | {mask.sum()} | {low:.1f} / {middle:.1f} / {high:.1f} | "
                f"{BEFORE_DB[name, label]:.2f} → {np.nanmean(np.abs(error[mask])):.2f} | {' / '.join(shares)} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verb = parser.add_mutually_exclusive_group(required=True)
    verb.add_argument("--compare", action="store_true", help="print our channel beside the answers kept")
    verb.add_argument("--trace", choices=(*WORLDS, ONE_WALL), help="make the answers of one world anew")
    args = parser.parse_args()
    if args.compare:
        print(compare())
    else:
        write_answers(ANSWERS / f"{args.trace}.npz", trace(args.trace))


if __name__ == "__main__":
    main()
