"""Clusters that stay, for the commands that start, find and end them: `life` is one in this process."""
