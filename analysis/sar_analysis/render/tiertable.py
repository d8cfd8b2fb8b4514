"""The same missions on two tiers, as a table for a document or one line of JSON.

python -m sar_analysis.render.tiertable runs/embedded runs/sih
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sar_analysis.results.tiergap import compare


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


def main() -> None:
    """Print the comparison as Markdown, or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path, help="folder of bags on one tier, such as a campaign's")
    parser.add_argument("second", type=Path, help="folder of bags of the same missions on the other")
    parser.add_argument("--json", action="store_true", help="print one line of JSON for machines")
    given = parser.parse_args()
    found = compare(given.first, given.second)
    print(json.dumps(found) if given.json else as_markdown(found))


if __name__ == "__main__":
    main()
