"""Feature gates: `gates` has which exist in which version; which fields they turn off: `disabled_fields`."""
