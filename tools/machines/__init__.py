"""Boots Debian guests with their own kernel, systemd and cgroup v2, tries lastcall there, and says in docs/machines.md
what came of it.

`guest` builds and boots a machine under emulation, `rows.sh` is what is run in it, `remedies.py` tries what `doctor`
proposes, `table.py` (pure) has the rows and writes the page.
"""
