"""Expressions in objects: the rules of declared kinds (x-kubernetes-validations)."""
