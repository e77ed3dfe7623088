"""Puts a cluster together: the process tree, its namespaces, and the components in their roles."""
