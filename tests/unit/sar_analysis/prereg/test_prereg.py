"""Registrations are complete, fit for their purpose, and cannot change behind a lock unnoticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sar_analysis.prereg import prereg
from sar_analysis.stats.interval import Interval
from sar_core.errors import ContractError, InputError, MissingDataError


def document(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "schema_version": 1,
        "hypothesis": "Partitioned lanes cover more within 240 s than a random walk.",
        "conditions": [
            {"name": "partitioned", "changes": {"pattern": "partitioned_lawnmower"}},
            {"name": "random", "changes": {"pattern": "random_walk"}},
        ],
        "seeds": list(range(10)),
        "episodes": {"set_version": 1, "indices": list(range(50))},
        "metric": "coverage_240s",
        "thresholds": [
            {"condition": "partitioned", "against": "random", "part": "low", "relation": "at_least", "limit": 0.2}
        ],
    }
    return {key: value for key, value in (base | changes).items() if value is not None}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(document(**changes), sort_keys=False))
    return path


def test_a_plain_registration_is_for_a_leaderboard_and_resamples_seeds(tmp_path: Path) -> None:
    registration = prereg.load_registration(written(tmp_path))
    assert (registration.run_purpose, registration.failure_policy) == ("leaderboard", "strict")
    assert (registration.estimator, registration.bootstrap.method) == ("iqm", "seeds")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bootstrap": {"method": "iid"}}, "bootstrap.method: iid ignores seeds; allowed for run_purpose leaderboard"),
        ({"seeds": list(range(9))}, "seeds: 9 given; allowed for run_purpose leaderboard: at least 10"),
        ({"seeds": [1, 2, 3, 4], "run_purpose": "power"}, "seeds: 4 given; allowed for run_purpose power: at least 5"),
        ({"seeds": [*range(10), "11"]}, "seeds.10 is '11'; allowed: input should be a valid integer"),
        ({"seeds": [*range(10), 3]}, "seeds: 3 is given twice"),
        ({"hypothesis": None}, "hypothesis is missing"),
        ({"hypotesis": "typo"}, "hypotesis is not a known key"),
        (
            {"run_purpose": "glory"},
            "run_purpose is 'glory'; allowed: input should be 'leaderboard', 'power' or 'debug'",
        ),
        ({"schema_version": 2}, "schema_version is 2; allowed: input should be 1"),
        ({"bootstrap": {"resamples": 10}}, "bootstrap.resamples is 10; allowed: input should be greater than or equal"),
        ({"conditions": [{"name": "partitioned"}]}, "condition 'random' is not registered; allowed: partitioned"),
        (
            {"conditions": [{"name": "partitioned"}], "thresholds": [], "estimator": "probability_of_improvement"},
            "at least 2 conditions",
        ),
        (
            {
                "estimator": "probability_of_improvement",
                "thresholds": [{"condition": "random", "part": "low", "relation": "at_least", "limit": 0.5}],
            },
            "thresholds: against is missing",
        ),
        (
            {"metric": "time_to_95_s"},
            "estimator: iqm of time_to_95_s has no place for a miss, which is beyond every number; allowed: median",
        ),
        (
            {"metric": "localization_error_m", "estimator": "mean"},
            "estimator: mean of localization_error_m has no place",
        ),
        (
            {"metric": "time_to_first_detection_s", "estimator": "probability_of_improvement"},
            "estimator: probability_of_improvement of time_to_first_detection_s",
        ),
        ({"episodes": {"set_version": 1, "indices": []}}, "episodes.indices is \\[\\]"),
        (
            {"thresholds": [{"condition": "random", "part": "low", "relation": "at_least", "limit": float("nan")}]},
            "limit",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(InputError, match=message) as caught:
        prereg.load_registration(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_debug_runs_may_be_small_and_iid(tmp_path: Path) -> None:
    small = {"seeds": [4], "run_purpose": "debug", "bootstrap": {"method": "iid"}}
    assert prereg.load_registration(written(tmp_path, **small)).seeds == (4,)


def test_files_that_are_no_registration_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"nowhere\.yaml: no such registration"):
        prereg.load_registration(tmp_path / "nowhere.yaml")
    path = tmp_path / "study.yaml"
    for text, message in (
        ("", "a registration is a mapping of keys to values, found NoneType"),
        ("seeds: [1\n", "cannot read the registration"),
        ("[" * 5000, "cannot read the registration"),
        ("bootstrap: &a {method: *a}\n", "bootstrap.method"),
        (yaml.safe_dump(document()) + "seeds: [1]\n", "key 'seeds' is given 2 times; allowed: once"),
        ("conditions:\n- {name: a, name: b}\n", "key 'name' is given 2 times"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            prereg.load_registration(path)


def test_the_hash_sees_meaning_and_not_layout(tmp_path: Path) -> None:
    path = written(tmp_path)
    plain = prereg.load_registration(path).sha256
    two = [{"name": "a", "changes": {"sigma": 0.1, "kappa": 4}}, {"name": "b"}]
    turned_two = [{"changes": {"kappa": 4, "sigma": 0.1}, "name": "a"}, {"name": "b", "changes": {}}]
    first, second = (
        prereg.load_registration(written(tmp_path, conditions=c, thresholds=[])).sha256 for c in (two, turned_two)
    )
    assert first == second != plain
    turned = dict(reversed(document(run_purpose="leaderboard", bootstrap={"resamples": 10_000}).items()))
    path.write_text("# a comment\n" + json.dumps(turned, indent=3))
    assert prereg.load_registration(path).sha256 == plain
    assert prereg.load_registration(written(tmp_path, seeds=list(range(1, 11)))).sha256 != plain


def test_no_phase_noise_is_one_registration_however_it_is_written(tmp_path: Path) -> None:
    def kappa(value: Any) -> list[dict[str, Any]]:
        return [{"name": "a", "changes": {"kappa": value}}]

    path = written(tmp_path, conditions=kappa(float("inf")), thresholds=[])
    assert "kappa: .inf" in path.read_text()
    sha = prereg.lock(path)
    for same in ("inf", ".inf", float("inf")):
        written(tmp_path, conditions=kappa(same), thresholds=[])
        assert prereg.verify(path) == prereg.Match("matches", sha)
    for wrong in (float("nan"), float("-inf")):
        with pytest.raises(InputError, match=r"conditions\.0\.changes.* kappa is -?(nan|inf); allowed: a finite"):
            prereg.load_registration(written(tmp_path, conditions=kappa(wrong), thresholds=[]))


def test_a_lock_holds_and_names_what_changed(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert prereg.verify(path).sentence == "was never locked: exploratory, not pre-registered"
    sha = prereg.lock(path)
    assert prereg.verify(path) == prereg.Match("matches", sha)
    assert prereg.lock(path) == sha
    written(tmp_path, metric="cep50_m", notes="better like this")
    match = prereg.verify(path)
    assert (match.status, match.changed) == ("differs", ("metric", "notes"))
    assert match.sentence == "differs from its lock in metric, notes: exploratory, not pre-registered"
    with pytest.raises(ContractError, match="already locks other content"):
        prereg.lock(path)


@pytest.mark.parametrize("damage", ['"x"', "{}", "{"])
def test_a_broken_lock_is_refused(tmp_path: Path, damage: str) -> None:
    path = written(tmp_path)
    prereg.lock(path)
    prereg.lock_path(path).write_text(damage)
    with pytest.raises(ContractError, match="cannot read the lock"):
        prereg.verify(path)


def test_a_doctored_lock_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    prereg.lock(path)
    stored = json.loads(prereg.lock_path(path).read_text())
    stored["content"]["metric"] = "cep50_m"
    prereg.lock_path(path).write_text(json.dumps(stored))
    with pytest.raises(ContractError, match="its content hashes to"):
        prereg.verify(path)


def test_what_was_flown_is_held_to_what_was_registered(tmp_path: Path) -> None:
    registration = prereg.load_registration(written(tmp_path))
    assert prereg.deviations(registration, ["random", "partitioned"], range(10), range(50)) == ()
    assert prereg.deviations(registration, ["random", "spiral"], range(1, 10), range(50)) == (
        "registered conditions not flown: partitioned",
        "conditions flown but not registered: spiral",
        "registered seeds not flown: 0",
    )


def test_a_threshold_decides_on_its_part_of_the_interval() -> None:
    interval = Interval(0.3, 0.2, 0.4, 0.95, "m", "e")
    for part, relation, limit, holds in (
        ("low", "at_least", 0.2, True),
        ("low", "at_least", 0.21, False),
        ("high", "at_most", 0.4, True),
        ("value", "at_most", 0.29, False),
    ):
        claim = {"condition": "a", "part": part, "relation": relation, "limit": limit}
        assert prereg.Threshold.model_validate(claim).holds(interval) == holds
