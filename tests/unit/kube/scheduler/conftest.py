"""What every test here uses."""

from shared_objects import shared_objects_stay_as_they_are  # noqa: F401 (a fixture of every test here)
