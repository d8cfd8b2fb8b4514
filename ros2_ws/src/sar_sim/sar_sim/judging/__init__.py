"""The truth: contacts, coverage and scores."""
