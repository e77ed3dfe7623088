"""Names that others may need before anything else of the proxy."""

TABLE = "lastcall-proxy"
"""The nftables table of each node."""
