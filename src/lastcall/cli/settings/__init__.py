"""Values of options that are not given on the command line: from `LASTCALL_*` variables and from lastcall.yaml."""
