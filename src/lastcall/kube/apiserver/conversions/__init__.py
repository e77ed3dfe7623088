"""Kinds served in two group-versions and stored in one: which in `table`, how in a module for each."""
