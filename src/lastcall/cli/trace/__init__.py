"""Run `lastcall trace`: `command` reads the options, `session` follows Pods and reports."""
