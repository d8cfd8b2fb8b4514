"""``python -m sar_eval`` is ``sar-eval``."""

from sar_eval.start import main

main()
