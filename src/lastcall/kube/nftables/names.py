"""Names of tables that are asked for before anything of theirs is imported."""

HOST_PORTS = "lastcall-hostports"
SOURCES = "lastcall-sources"
POLICIES = "lastcall-policies"
