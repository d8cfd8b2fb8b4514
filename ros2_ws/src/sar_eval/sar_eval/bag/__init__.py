"""Bytes: messages, the writer of bags, and what checks, mends and keeps them."""
