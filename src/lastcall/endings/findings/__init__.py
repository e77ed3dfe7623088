"""Findings: what a reader should know about an ending. `rules` has the list; a module for each subject. Pure."""
