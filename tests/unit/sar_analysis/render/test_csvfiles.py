"""CSV for other programs: exactly the columns asked for, and every figure has a value or says why it has none."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.render.csvfiles import SUMMARY, figures, write_rows
from tests.unit.sar_analysis.documents import result, typed

texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\r\0"))


@given(st.lists(st.tuples(texts, texts), max_size=5))
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    write_rows(path, ("a", "b"), [{"a": a, "b": b} for a, b in pairs])
    with open(path, newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["a", "b"] and rows == [list(pair) for pair in pairs]


def test_undefined_is_empty_and_zero_is_zero(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "r.csv", ("a", "b", "c"), [{"a": None, "b": 0.0}])
    assert path.read_text() == "a,b,c\n,0.0,\n"


def test_a_column_nobody_asked_for_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'z'"):
        write_rows(tmp_path / "r.csv", ("a",), [{"a": 1, "z": 2}])


def test_every_kind_of_figure_is_a_row_with_its_condition() -> None:
    made = {"method": "by hand", "cluster": "layout", "resamples": 200, "seed": 0}
    mean = {"value": 90.0, "low": 70.0, "high": 99.0, "n": 3, "unit": "missions", **made, "notes": [], "exact": None}
    about = {"estimand": "these", "confidence": 0.95}
    given = result(1)
    given["conditions"][0] |= {
        "estimates": [
            {
                **{"metric": "coverage_240s", "value": 0.5, "low": 0.4, "high": None, "n": 3, "unit": "missions"},
                **{
                    **made,
                    "notes": ["no high end"],
                    "exact": {"value": 0.5, "low": 0.3, "high": 0.7, "method": "exact"},
                },
            }
        ],
        "not_computed": [{"metric": "cep50_m", "why": "no victim was found"}],
        "scores": [
            {
                **{"metric": "return", "statistic": "iqm", "design": "seeds", "reading": "t", "n": 3, "value": 2.0},
                **{"low": 1.0, "high": 3.0, **made, "notes": ["few", "equal"], **about},
            },
            {"metric": "return", "statistic": "iqm", "refused": "one seed"},
        ],
        "times": [
            {
                **{"metric": "time_to_95_s", "n": 3, "reached": 2, "censored": 1, "unit": "missions", "median": 99.0},
                **{"low": 80.0, "high": None, **made, "notes": ["open end"], "exact": None, "horizon_s": 240.0},
                "restricted_mean": mean,
            }
        ],
    }
    rows = list(figures(typed(given)))
    assert [(row["kind"], row["metric"], row.get("value"), row["note"]) for row in rows] == [
        ("estimate", "coverage_240s", 0.5, "no high end"),
        ("estimate", "cep50_m", None, "not computed: no victim was found"),
        ("iqm", "return", 2.0, "few; equal"),
        ("iqm", "return", None, "refused: one seed"),
        ("median time", "time_to_95_s", 99.0, "open end"),
        ("mean time up to 240 s", "time_to_95_s", 90.0, ""),
    ]
    assert (rows[0]["exact_low"], rows[0]["exact_high"], rows[0]["exact_method"]) == (0.3, 0.7, "exact")
    assert {(row["condition"], row["missions"], row["invalid"]) for row in rows} == {("c01", 30, 0)}
    assert all(row.keys() <= set(SUMMARY) for row in rows)
