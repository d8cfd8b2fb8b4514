"""The same missions on two tiers, as a table for a document."""

from __future__ import annotations

from typing import Any


def as_markdown(found: dict[str, Any]) -> str:
    """A table for a document."""
    first, second = found["tiers"]
    lines = [
        f"| | {first} | {second} | {second} minus {first}, 95 % interval |",
        "|---|---|---|---|",
    ]
    for row in found["rows"]:
        name = f"{row['measure']} ({row['unit']})" if row["unit"] else row["measure"]
        gap = f"{row['difference']:+.3g} ({row['low']:+.3g} to {row['high']:+.3g})"
        lines.append(f"| {name} | {row['first']:.4g} | {row['second']:.4g} | {gap} |")
    lines.append("")
    lines.append(f"{found['pairs']} missions on both tiers; {found['method']}.")
    return "\n".join(lines)
