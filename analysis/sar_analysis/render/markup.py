"""HTML as a tree of calls in which text is always escaped: nothing that comes from data can become markup."""

from __future__ import annotations

from html import escape

VOID = ("input", "meta", "br", "hr", "col")


class Html(str):
    """Text that is markup already. Only this module and the page's own assets make it."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """One element. Attribute names give - for _ (class_ for class); None and False leave an attribute out."""
    said = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        said.append(f" {key}" if value is True else f' {key}="{escape(str(value), quote=True)}"')
    opened = f"<{name}{''.join(said)}>"
    return Html(opened if name in VOID else f"{opened}{join(*children)}</{name}>")


def join(*children: object) -> Html:
    """Children one after the other: markup as it is, everything else escaped, None left out."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, list | tuple):
            parts.append(join(*child))
        else:
            parts.append(escape(str(child), quote=False))
    return Html("".join(parts))
