"""Runs the project's tests in tiers: `make test-fast`, `make test`, `make test-all`.

`tiers.py` (which tests), `groups.py` (how they are shared out), `outcomes.py` and `verdict.py` (what the results mean)
are pure; `plugin.py` runs inside pytest; `jobs.py` starts processes; `prepare.py` installs what is needed.
Standard library only: it runs before anything is installed.
"""
