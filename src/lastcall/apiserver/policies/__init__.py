"""Admission policies: ValidatingAdmissionPolicy and MutatingAdmissionPolicy with their bindings, and the expressions
that webhooks name in `matchConditions`. Imported with the first of them.

`language` compiles expressions, `evaluation` runs them, `validating` and `mutating` say what follows: all pure.
`dispatch` is the shell.
"""
