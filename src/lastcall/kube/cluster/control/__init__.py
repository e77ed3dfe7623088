"""How front is talked to: the `socket` of a cluster that stays and its `server`; init's `channel`; a `node`'s end."""
