"""`lastcall node join`: this machine as a node of somebody's cluster."""
