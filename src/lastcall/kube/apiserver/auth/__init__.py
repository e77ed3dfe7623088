"""Who asks (`authentication`, `tokens`, `impersonation`) and what they may (`authorizer`). Rules: `rbac`,
`node_rules` (pure).
"""
