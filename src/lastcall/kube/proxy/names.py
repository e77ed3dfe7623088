"""Names that others may need before anything else of the proxy."""

TABLE = "lastcall-proxy"
"""The nftables table of each node."""

API_SERVER = ("default", "kubernetes")
"""The Service that every cluster has. The API server listens on its address itself, which so needs no rule."""
