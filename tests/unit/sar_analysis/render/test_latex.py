"""Tables for a paper: everything escaped, each its own float."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.render.latex import _float, escape
from sar_analysis.render.wording import TextTable


def test_latex_escapes() -> None:
    assert escape("50 % of a_b & {c}") == r"50 \% of a\_b \& \{c\}"
    assert escape("\\ ~ ^ # $ <") == r"\textbackslash{} \textasciitilde{} \textasciicircum{} \# \$ \textless{}"


TABLE = TextTable("front_page", "100 % & more", ("a_b", "n"), (("[1.0, 2.0]", "3"), ("κ = ∞", "#4")), "of \\input{x}")


def test_a_float_has_one_cell_per_column_and_nothing_from_data_is_a_command() -> None:
    text = _float(TABLE)
    assert r"\caption{100 \% \& more. of \textbackslash{}input\{x\}}" in text
    assert r"\label{tab:front-page}" in text and r"\begin{tabular}{ll}" in text
    assert r"a\_b & n \\" in text and r"$\kappa$ = $\infty$ & \#4 \\" in text


def test_a_row_that_begins_with_a_bracket_is_no_option_of_the_line_before() -> None:
    r"""``\\ [1.0, 2.0]`` would be read as a skip of that length."""
    assert r"{}[1.0, 2.0] & 3 \\" in _float(TABLE).splitlines()


@given(st.text())
def test_no_character_that_tex_acts_on_is_left_bare(text: str) -> None:
    plain = re.sub(
        r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textdegree)\{\}", "", escape(text)
    )
    plain = re.sub(r"\\textsuperscript\{[23]\}|\$\\(sigma|kappa|infty|cdot|tau|mu)\$", "", plain)
    plain = re.sub(r"\\[&%$#_{}]", "", plain)
    assert not set("\\&%$#_{}~^") & set(plain)
