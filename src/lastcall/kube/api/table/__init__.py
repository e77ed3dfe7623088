"""Server-side tables, the rows of `kubectl get`: `rows` has the table of kinds."""
