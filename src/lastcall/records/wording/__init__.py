"""A record in words: one short line each. `words` has the door, the other modules the lines of some actors. Pure."""
