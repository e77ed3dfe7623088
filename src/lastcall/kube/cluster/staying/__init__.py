"""A cluster that stays, on the host's side: `front` runs it, `state` outlives it."""
