"""PodDisruptionBudgets. What one allows: `decide` (pure). `controller` writes it into the status."""
