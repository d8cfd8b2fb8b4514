"""``python -m sar_eval`` is ``sar-eval``."""

from sar_eval.cli import main

main()
