"""The API server: HTTP face, registry, deletion rules, watch, discovery, authentication."""
