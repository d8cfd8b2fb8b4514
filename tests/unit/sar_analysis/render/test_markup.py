"""Nothing that comes from data can become markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.render.markup import VOID, Html, join, tag


def test_markup_escapes_text_and_attributes() -> None:
    assert tag("p", "<b>&\"'", title="<b>&\"'") == '<p title="&lt;b&gt;&amp;&quot;&#x27;">&lt;b&gt;&amp;"\'</p>'
    assert join(tag("b", 1), None, ["<", 2.5]) == "<b>1</b>&lt;2.5"
    assert tag("input", checked=True, disabled=False, name=None) == "<input checked>"


class Read(HTMLParser):
    """What a browser would make of a text: its elements with their attributes, and the text between."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((name, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r"))


@given(texts, texts)
def test_a_browser_reads_back_what_was_said(text: str, title: str) -> None:
    read = Read(tag("p", text, title=title))
    assert read.seen == [("p", {"title": title})]
    assert read.text == text


def test_attribute_names_are_those_of_html() -> None:
    assert tag("i", class_="a", data_row=3, aria_label="x") == '<i class="a" data-row="3" aria-label="x"></i>'
    assert tag("i", title="", value=0) == '<i title="" value="0"></i>', "empty and zero are values"


@pytest.mark.parametrize("name", VOID)
def test_an_element_without_content_is_not_closed(name: str) -> None:
    assert tag(name) == f"<{name}>"


def test_markup_is_not_escaped_twice_and_plain_text_is_once() -> None:
    once = tag("b", "<")
    assert isinstance(once, Html)
    assert join(once, [once, (once,)]) == once * 3
    assert join("<b>") == "&lt;b&gt;"
