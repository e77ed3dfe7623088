"""`lastcall image`: `command` and what it needs."""
