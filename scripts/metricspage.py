"""Write the catalogue of metrics into docs/metrics.md, between its marks.

python scripts/metricspage.py
"""

from __future__ import annotations

from pathlib import Path

from sar_analysis.render.markdown import catalogue_tables

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"


def renewed(page: str) -> str:
    """The page with its tables as the catalogue has them now."""
    for name, table in catalogue_tables().items():
        begin, end = f"<!-- catalogue: {name} -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}{table}{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
