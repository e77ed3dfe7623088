"""How objects of a kind are kept: `generic` creates, updates and deletes; `listing` and `watch` read."""
