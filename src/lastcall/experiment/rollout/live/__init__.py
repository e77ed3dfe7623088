"""Feed the live page of `lastcall rollout --ui`: send it the state, and predict."""
