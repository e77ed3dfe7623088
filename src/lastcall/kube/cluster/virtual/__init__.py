"""Clusters in virtual time: `tree` puts one together, `load` makes its requests."""
