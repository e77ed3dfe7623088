"""`lastcall rollout`: `command` starts, `session` is one experiment, `report` and `html` report it."""
