"""Defaulting: `kinds` has the table of kinds and the rules of Pods, `workloads` those of their owners and others."""
