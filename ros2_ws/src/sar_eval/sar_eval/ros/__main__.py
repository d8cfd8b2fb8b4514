"""``python -m sar_eval.ros NODE... --ros-args ...`` runs one node, or several composed in one process."""

from __future__ import annotations

import sys

from sar_eval.ros.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
