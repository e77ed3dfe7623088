"""Roles that hang or die. When it is a hang: `decide` (pure), `watchdog` acts; starting again: `restarts` (pure)."""
