"""Sample-efficiency curves for people: the points of a training as JSON, and drawn where asked.

python -m sar_analysis.render.trainingcurves points.jsonl --out curve
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from sar_analysis.render.figures import draw_figures
from sar_analysis.results.efficiency import as_plain, curves, read_points


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the curves as JSON, and draw them where asked."""
    parser = argparse.ArgumentParser(
        prog="python -m sar_analysis.render.trainingcurves", description=__doc__.split("\n")[0]
    )
    parser.add_argument("points", type=Path, help="JSONL of evaluation points")
    parser.add_argument("--title", default="Training", help="what the picture is called; name the tier")
    parser.add_argument("--out", type=Path, help="folder for the picture")
    given = parser.parse_args(arguments)
    plain = as_plain(curves(read_points(given.points)))
    print(json.dumps(plain, indent=1))
    if given.out is not None:
        draw_figures({"result": {"title": given.title, "sample_efficiency": plain}}, given.out)


if __name__ == "__main__":
    main()
