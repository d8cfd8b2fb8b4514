"""A finished evaluation as a small folder to commit: it identifies itself and names no place of any machine.

    sar-eval publish runs/full --commit HEAD --out results    # of what `sar-eval eval` left
    sar-eval publish results --renew                          # the same flights, analysed by today's code

    manifest.json                           what was flown with what, where and by which command; hashes of the rest
    episodes.jsonl.zst  stage1.jsonl.zst    every Stage-2 record in the order of the plan, every Stage-1 row
    seeds.json                              what the seeds were chosen from
    RESULTS.md  TABLES.md  results.json  figures/    what all that comes to

Seeds and findings follow from the records alone: whoever has the folder can make them again, and count.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sar_analysis.bags.textfiles import read_text, write_compressed
from sar_analysis.render.figures import draw_figures
from sar_analysis.render.markdown import pages
from sar_analysis.render.wholefolder import FolderKind
from sar_analysis.results.document import build_results
from sar_analysis.results.optimality import load_reference
from sar_analysis.results.stagegap import Stage1Prediction
from sar_analysis.stage1.figures import plain_choice
from sar_analysis.stage1.medianseeds import choose
from sar_analysis.stage1.rows import Stage1Row, read_stage1
from sar_analysis.table import analyze
from sar_core.errors import ContractError, InputError, MissingDataError
from sar_core.sealed import seal
from sar_eval.campaign.acceptance import Acceptance
from sar_eval.campaign.erratum import SCHEMA as OLD_DEFINITIONS
from sar_eval.campaign.erratum import campaign_erratum
from sar_eval.campaign.evaluation import CAMPAIGN, FULL, STAGE1, STAGE1_SEEDS, Evaluation, Extent, follow, reference_of
from sar_eval.campaign.ledger import LEDGER, PACKED, read_ledger
from sar_eval.campaign.manifest import MANIFEST, Manifest, file_sha256, read_manifest
from sar_eval.campaign.sources import PACKAGE, WHOLE
from sar_eval.episode.record import Record
from sar_eval.scenario.episodeset import load_set

RECORDS, ROWS = PACKED, f"{STAGE1}.zst"
SEEDS = "seeds.json"
FLOWN = (RECORDS, ROWS, MANIFEST)
FOUND = (SEEDS, "RESULTS.md", "TABLES.md", "results.json")
FIGURES = "figures"
FOLDER = FolderKind("published results", (*FLOWN, *FOUND), FIGURES, (".svg",))
HOST_KEYS = ("sar_eval", "platform", "python", "processor", "cores", "memory_gib", "stage1_file")
RUN_KEYS = ("version", "rtf", "wall_s", "setup_s")
"""What is told of the machine and of each flight on it; the rest is nobody's business."""


def publish(folder: Path, commit: str, out: Path, checkout: Path) -> None:
    """The folder of `sar-eval eval` as published results; everything is checked before anything is written."""
    FOLDER.check_place(out)
    manifest = read_manifest(folder / CAMPAIGN)
    if manifest is None:
        raise MissingDataError(f"{folder / CAMPAIGN}: no {MANIFEST}; expected the folder that sar-eval eval left")
    records = whole_records(folder / CAMPAIGN, manifest)
    evaluation = evaluation_of(folder, manifest, records)
    host = {key: manifest.host[key] for key in HOST_KEYS if key in manifest.host}
    host["commit"] = checked_commit(checkout, commit, manifest)
    host["command"] = command_of(evaluation, read_stage1(folder / STAGE1))
    host["flying_s"] = round(sum(record.run.get("wall_s") or 0.0 for record in records), 1)
    with FOLDER.made(out) as fresh:
        manifest = replace(manifest, host=host, files={})
        manifest.write(fresh)
        write_compressed(fresh / RECORDS, "".join(_line(record) for record in records))
        write_compressed(fresh / ROWS, read_text(folder / STAGE1))
        write_findings(fresh)
        _with_hashes(manifest, fresh).write(fresh)
        check_placeless(fresh, (folder.resolve(), checkout.resolve(), Path.home()))


def renew(folder: Path) -> None:
    """Published results analysed again, by this version of the analysis."""
    FOLDER.check_place(folder)
    lacking = next((name for name in FLOWN if not (folder / name).is_file()), None)
    if lacking is not None:
        raise MissingDataError(f"{folder}: no {lacking}; expected published results")
    manifest = read_manifest(folder, FLOWN)
    assert manifest is not None
    with FOLDER.made(folder) as fresh:
        for name in FLOWN:
            shutil.copyfile(folder / name, fresh / name)
        write_findings(fresh)
        _with_hashes(manifest, fresh).write(fresh)


def _with_hashes(manifest: Manifest, folder: Path) -> Manifest:
    """The manifest of everything else in a folder, so that damage to any of it is noticed."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)
    return replace(manifest, files={file.relative_to(folder).as_posix(): file_sha256(file) for file in files})


def whole_records(campaign: Path, manifest: Manifest) -> list[Record]:
    """All records in the order of the plan; an unfinished campaign is refused."""
    records = read_ledger(campaign / LEDGER)
    Acceptance(manifest).check(records, campaign / LEDGER)
    missing = [key for key in manifest.episodes if key not in records]
    if missing:
        left = f"{len(missing)} of {len(manifest.episodes)} missions are not flown, the first is {missing[0]}"
        raise MissingDataError(f"{campaign}: {left}; only a finished campaign is published")
    return [records[key] for key in manifest.episodes]


def evaluation_of(folder: Path, manifest: Manifest, records: Sequence[Record]) -> Evaluation:
    """The evaluation that this campaign is, found again from its Stage-1 file; refused if it is another one."""
    extent = Extent(
        tuple(dict.fromkeys(record.result["episode"] for record in records)),
        tuple(manifest.decides["configuration"]["patterns"]),
    )
    evaluation = follow(folder / STAGE1, extent)
    again = evaluation.manifest
    one, two = (made.decides["inputs"]["stage1"] for made in (again, manifest))
    if [one[key] for key in ("sha256", "rule")] != [two[key] for key in ("sha256", "rule")]:
        raise ContractError(f"{folder / STAGE1}: is not the Stage-1 file that the campaign's seeds were chosen from")
    if (again.episodes, again.decides["configuration"]) != (manifest.episodes, manifest.decides["configuration"]):
        raise InputError(f"{folder / CAMPAIGN}: has other settings than sar-eval eval; only its are published")
    return evaluation


def command_of(evaluation: Evaluation, rows: Sequence[Any]) -> str:
    """The command that flies this evaluation."""
    choice = evaluation.plan.choice
    words = ["sar-eval", "eval"]
    if Extent(choice.episodes, choice.patterns) == FULL:
        words.append("--full")
    else:
        words += ["--episodes", ",".join(map(str, choice.episodes))]
        words += [word for pattern in choice.patterns for word in ("--pattern", pattern)]
    seeds = tuple(sorted({row.seed for row in rows}))
    return " ".join(words if seeds == STAGE1_SEEDS else [*words, "--seeds", ",".join(map(str, seeds))])


def checked_commit(checkout: Path, commit: str, manifest: Manifest) -> str:
    """The full name of a commit, after its sources were found to be those that flew."""
    name = _git(checkout, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", told=commit).decode().strip()
    places = {package: f"ros2_ws/src/{package}/{package}" for package in (*WHOLE, PACKAGE)}
    packed = _git(checkout, "archive", name, "ros2_ws/src", told=commit)
    code = manifest.decides["code"]
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(place, filter="data")
        folders = {package: Path(place) / path for package, path in places.items()}
        if manifest.rule == 1:
            flown = sources_by_rule_1(folders)
            other = [package for package, digest in flown.items() if code[package] != digest]
        else:
            files = ((p, f, digest) for p in places for f, digest in code.get(p, {}).items())
            other = [f"{p}/{f}" for p, f, digest in files if not _is(folders[p] / f, digest)]
    if other:
        raise ContractError(f"commit {commit}: its {', '.join(other[:5])} is not the code that flew the campaign")
    return name


def _is(file: Path, digest: str) -> bool:
    return file.is_file() and file_sha256(file)[:16] == digest


def sources_by_rule_1(folders: Mapping[str, Path]) -> dict[str, str]:
    """Hash of each package as manifests without a rule have it: modules of one level, and what ``episode`` imports."""
    files = {room: sorted(folders[room].glob("*.py")) for room in ("sar_core", "sar_sim", "sar_swarm")}
    found: dict[str, Path] = {}
    waiting = ["episode"]
    while waiting:
        name = waiting.pop()
        path = folders[PACKAGE] / f"{name}.py"
        if name not in found and path.is_file():
            found[name] = path
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
                    module = (node.module or "").partition(".")[2]
                    waiting += [module] if module else [alias.name for alias in node.names]
    files[PACKAGE] = [found[name] for name in sorted(found)]
    hashes = {}
    for package, listed in files.items():
        digest = hashlib.sha256()
        for file in listed:
            body = file.read_bytes()
            digest.update(f"{file.name} {len(body)}\n".encode() + body)
        hashes[package] = digest.hexdigest()
    return hashes


def _git(checkout: Path, *words: str, told: str) -> bytes:
    done = subprocess.run(["git", "-C", str(checkout), *words], capture_output=True, check=False)
    if done.returncode != 0:
        raise InputError(f"commit {told}: git does not find it, or no packages of ours in it, in {checkout}")
    return done.stdout


def seeds_told(rows: Sequence[Stage1Row]) -> dict[str, Any]:
    """What seeds.json says: the median seeds, and the figure of every seed they were chosen from."""
    return plain_choice(choose(rows), rows, load_set(str(rows[0].episode_set)).layout_number)


def write_findings(folder: Path) -> None:
    """Everything that follows from the records and rows in a folder."""
    rows, table = read_stage1(folder / ROWS), analyze(folder / RECORDS)
    told = seeds_told(rows)
    (folder / SEEDS).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    reference = reference_of(table.episodes[0].episode_set)
    oracle = None if reference is None else load_reference(reference)
    hidden = campaign_erratum(folder) if table.episodes[0].schema == OLD_DEFINITIONS else []
    document = build_results(table, reference=oracle, stage1=Stage1Prediction(ROWS, rows), erratum=hidden)
    (folder / "results.json").write_text(document.text(), encoding="utf-8")
    for name, text in pages(document).items():
        (folder / name).write_text(text, encoding="utf-8")
    for picture in draw_figures(document.result, folder / FIGURES):
        if picture.suffix not in FOLDER.endings:
            picture.unlink()


def check_placeless(folder: Path, places: Sequence[Path]) -> None:
    """Refuse a folder whose texts name one of these places."""
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        text = read_text(file)
        named = next((place for place in places if place != Path("/") and str(place) in text), None)
        if named is not None:
            raise ContractError(f"{file.name}: names {named}, a place of this machine; results to publish may not")


def _line(record: Record) -> str:
    run = {key: record.run[key] for key in RUN_KEYS if key in record.run}
    return f"{seal(Record(record.result, run).as_dict())}\n"
