"""The experiments of `lastcall rollout`: each on a cluster of its own, as many as are asked for, and their reports."""
