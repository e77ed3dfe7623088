"""Scenarios: their facts, faults, programs and replay."""
