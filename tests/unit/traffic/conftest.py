"""What every test here uses."""

from scenario.translation import what_is_made_can_be_told_in_japanese  # noqa: F401 (a fixture of every test here)
