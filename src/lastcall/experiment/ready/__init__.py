"""Objects of a running cluster: apply them, wait until they are ready."""
