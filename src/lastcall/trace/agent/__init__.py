"""The node agent of `lastcall trace --node-agent`: it reads what a node's kernel says of the Pods it is asked about.

Standard library, the shim's readers of /proc and, for the package that it is in, lazy_loader (1 ms) only, so that it
starts quickly and needs little. It writes to stdout and nowhere else, changes nothing on the node, and speaks to nobody
but the client that is attached to it.

Pure: `cgroup_tree` (which process is whose), `requests` (what it is sent), `service_rules` (to
whom nf_tables sends). `container` and `node` do the looking, `rule_watch` hears of rules, `groups` reads control
groups, `lines` writes.
"""
