"""Expressions that run: a checked tree becomes functions of a `State`, which count what they cost.

`planning` makes the functions, `attributes` those that read names, fields and elements, `calls` those that call,
`folds` those of comprehensions, `program` runs them. Costs are those of cel-go interpreter/runtimecost.go as
Kubernetes sets it up.
"""
