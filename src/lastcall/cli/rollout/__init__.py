"""`lastcall rollout`: `command` and its options, one experiment (`own_cluster`, `existing`) or several (`rounds`)."""
