"""Containers with one user id: `filter` traps what the kernel would refuse, `supervisor` answers it."""
