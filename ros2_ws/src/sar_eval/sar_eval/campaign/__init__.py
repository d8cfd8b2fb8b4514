"""Many missions: plan, identity, ledger, workers, evaluation and what is published of it."""
