"""Stage 1 end to end: whole, deterministic, readable by the analysis, and with the return of every other stage."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from sar_analysis.stage1.medianseeds import choose
from sar_analysis.stage1.rows import read_stage1
from sar_core.errors import ContractError, InputError, RunError
from sar_core.reward import Counts, episode_return
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.matrix import Matrix, default_observations, fly_matrix, plan, write_rows
from sar_eval.stage1.observations import fit, load_observations, write_observations
from sar_swarm.piloting.patternlist import STANDARD
from tests.unit.sar_eval.madeflights import made_flights

SCENARIO = Scenario(episode_set="village-v2")


@pytest.fixture(scope="module")
def statistics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stage1") / "made-v1.json"
    write_observations(fit(made_flights(200, 0), prepare(SCENARIO, 0, 0), "made-v1"), path)
    return path


@pytest.fixture(scope="module")
def matrix(statistics: Path) -> Matrix:
    return plan(SCENARIO, STANDARD, (0, 1, 2), (0, 4, 25), statistics)


@pytest.fixture(scope="module")
def results(matrix: Matrix, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("out") / "stage1.jsonl"
    assert write_rows(path, fly_matrix(matrix, 1, lambda done: None)) == len(matrix) == 72
    return path


def test_every_episode_has_a_row_that_the_analysis_reads(results: Path, matrix: Matrix) -> None:
    rows = read_stage1(results)
    assert {row.policy for row in rows} == set(STANDARD) == set(matrix.policies)
    assert {(row.seed, row.episode) for row in rows} == {(s, e) for s in (0, 1, 2) for e in (0, 4, 25)}
    assert {(row.stage, row.schema_version, row.world, row.episode_set) for row in rows} == {
        (1, 3, "village", "village-v2")
    }
    assert {(row.episode, row.sigma, row.kappa) for row in rows} == {(0, 0.0, 1e4), (4, 0.4, 1.0), (25, 0.0, 1e4)}
    assert len(choose(rows, 1).seeds) == 1


def test_the_return_is_the_sum_of_its_counts_by_the_one_formula(results: Path) -> None:
    for row in read_stage1(results):
        assert row.return_counts is not None
        counts = Counts(**row.return_counts)
        assert row.episode_return == episode_return(counts)
        assert counts.confirmed_victims == row.detections
        assert row.coverage_240s is not None
        assert counts.new_cells >= round(row.coverage_240s * 6400)
        assert (row.time_to_first_detection_s is None) == (row.detections == 0)


def test_every_issue_has_its_constellation_beside_its_error(results: Path) -> None:
    rows = read_stage1(results)
    for row in rows:
        assert row.gdops is not None and row.errors_m is not None
        assert len(row.gdops) == len(row.errors_m)
        assert row.gdop == (row.gdops[0] if row.gdops else None)
        assert (row.localization_error_m is None) == (not row.errors_m)
    known = [value for row in rows for value in row.gdops or () if value is not None]
    assert len(known) > 20 and min(known) >= 2.0 / math.sqrt(4.0), "four drones can do no better"


def test_undefined_stays_undefined(results: Path) -> None:
    """At the noisiest level the made statistics find nothing: null, never 0."""
    hopeless = [json.loads(line) for line in results.read_text().splitlines() if json.loads(line)["episode"] == 4]
    assert {(row["detections"], row["time_to_first_detection_s"], row["localization_error_m"]) for row in hopeless} == {
        (0, None, None)
    }


def test_workers_and_repetition_change_nothing(results: Path, matrix: Matrix, tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    write_rows(again, fly_matrix(matrix, 2, lambda done: None))
    assert again.read_bytes() == results.read_bytes()


def test_triangulation_is_flown_as_plain_boustrophedon(results: Path) -> None:
    """What Stage 1 does not model: the baseline's detours. Its rows are the plain pattern's."""
    rows = read_stage1(results)
    by = {row.key[:3]: row for row in rows}
    for row in rows:
        if row.policy == "boustrophedon_triangulation":
            plain = by["boustrophedon", row.seed, row.episode]
            assert row.model_copy(update={"policy": "boustrophedon"}) == plain


def test_the_twin_without_victims_finds_nobody(statistics: Path) -> None:
    absent = SCENARIO.model_copy(update={"victim_absent": True})
    rows = list(fly_matrix(plan(absent, ("spiral",), (0,), (0, 1), statistics), 1, lambda done: None))
    assert [(row["victim_absent"], row["detections"]) for row in rows] == [(True, 0)] * 2


def test_what_cannot_be_flown_is_refused(statistics: Path, tmp_path: Path) -> None:
    for arguments, said in (
        ((SCENARIO, ("zigzag",), (0,), None), "pattern 'zigzag' is not known"),
        ((SCENARIO, ("policy",), (0,), None), "give its Stage-1 results as a file"),
        ((Scenario(world="village"), STANDARD, (0,), None), "Stage 1 flies a fixed episode set"),
        ((SCENARIO, STANDARD, (), None), "seeds: none given"),
        ((SCENARIO, STANDARD, (1_000_000,), None), "belong to calibration"),
        ((SCENARIO, STANDARD, (0,), (3, 50)), "village-v2 has 50 episodes"),
    ):
        with pytest.raises(InputError, match=said):
            plan(*arguments, statistics)
    with pytest.raises(ContractError, match=r"fitted for world"):
        plan(Scenario(episode_set="forest-v2"), STANDARD, (0,), None, statistics)


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "stage1.jsonl"
    with pytest.raises(RunError, match=r"cannot write the Stage-1 results"):
        write_rows(path, iter([{"policy": "p"}]))
    target = tmp_path / "stage1.jsonl"

    def breaking() -> object:
        yield {"policy": "p"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(target, breaking())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_the_committed_statistics_fit_the_committed_configuration() -> None:
    if not default_observations().is_file():
        pytest.skip(f"{default_observations()} is missing; make it: sar-eval fit-observations (minutes of flying)")
    model, _ = load_observations(default_observations(), prepare(SCENARIO, 0, 0))
    assert np.sum(model.events) == sum(len(pairs) for pairs in model.errors) > 0
    assert model.log_level[0] is not None
