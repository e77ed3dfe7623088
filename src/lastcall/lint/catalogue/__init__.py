"""The rules of `lastcall lint` by their stable ids: how bad, how sure, why, whose rule, and the fix in general."""
