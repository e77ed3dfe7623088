"""`run`: `session` is one run on a cluster of its own, `checks` its results for CI systems."""
