"""Write the JSON Schema of results.json from the typed document and the catalogue of metrics.

python scripts/schema.py
"""

from __future__ import annotations

import json
from pathlib import Path

from sar_analysis.results.model import results_schema

SCHEMA = Path(__file__).resolve().parents[1] / "analysis" / "sar_analysis" / "schemas" / "results.schema.json"


def text() -> str:
    """The schema as it is committed."""
    return json.dumps(results_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
