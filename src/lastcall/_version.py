"""The version, in its one place. Imports nothing: every part may import it."""

# check: standard library

__version__ = "0.1.0"
