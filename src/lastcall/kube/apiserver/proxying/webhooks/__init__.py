"""Admission webhooks: who is asked about a write (`matching`), what is said and heard (`review`), the call (`caller`)
and their order (`dispatch`). Imported with the first configuration."""
