"""Pages fit a screen: text is wrapped, tables and headings are not, and nothing becomes a list that was none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sar_analysis.render.markdown import COLUMNS, fitted

WORDS = st.lists(st.sampled_from(["mean", "of", "1", "-", "return", "2.", "*", "#", "oracle's", "+", "10"]), min_size=1)


def test_rows_and_headings_stay_whole() -> None:
    row, heading = f"| {'cell ' * 40}|", f"## {'long ' * 40}end"
    assert fitted(f"{heading}\n{row}\n") == f"{heading}\n{row}\n"


def test_a_bullet_goes_on_under_its_text() -> None:
    first, *rest = fitted(f"- {'word ' * 60}end\n").splitlines()
    assert first.startswith("- word") and rest and all(line.startswith("  word") for line in rest)
    assert all(COLUMNS - len("word ") < len(line) <= COLUMNS for line in (first, *rest[:-1]))


@given(WORDS)
def test_no_wrapped_line_begins_a_list(words: list[str]) -> None:
    text = f"A caption says {' '.join(words)} and ends."
    page = fitted(f"{text * 3}\n")
    assert " ".join(page.split()) == " ".join((text * 3).split())
    assert {token.type for token in MarkdownIt("commonmark").parse(page)} == {
        "paragraph_open",
        "inline",
        "paragraph_close",
    }
