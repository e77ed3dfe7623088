"""Kinds that lastcall has no table for: `declared` by a CustomResourceDefinition, `discovered` on another API
server.
"""
