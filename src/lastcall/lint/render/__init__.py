"""How findings are told: text, JSON, SARIF, GitHub annotations, JUnit. Pure."""
