"""`lastcall trace`: `command` reads the options, `session` follows and tells."""
