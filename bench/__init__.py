"""Measurements: `python -m bench` prints machine, n, median and spread of each figure (kept in RESULTS.md)."""
