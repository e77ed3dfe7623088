"""`lastcall run`: `command` starts, `session` is one run; options and output are shared with demo and story."""
