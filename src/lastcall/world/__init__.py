"""Everything the rest must not touch directly: clock, tasks, virtual time, kernel calls."""
