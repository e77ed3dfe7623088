"""The live page of `lastcall rollout --ui`: what it is told, and what it predicts."""
