"""Measurements. `python -m bench` prints machine, n, median and spread of each figure; results are kept in RESULTS.md."""
