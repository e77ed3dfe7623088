"""Why something is waited for: `follow` and `owners` watch, `why_not_ready` and `causes` put it in words (pure)."""
