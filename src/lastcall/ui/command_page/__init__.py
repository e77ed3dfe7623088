"""The live page of a command (`--ui`): a process of its own, which lives as long as the command."""
