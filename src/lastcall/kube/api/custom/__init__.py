"""Kinds that CustomResourceDefinitions declare: `kinds`, their schemas (`structural`), paths and patterns. Pure."""
