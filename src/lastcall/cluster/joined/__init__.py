"""A node of a cluster that others run: `lastcall node join`."""
