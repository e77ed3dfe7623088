"""Admission policies: ValidatingAdmissionPolicy and MutatingAdmissionPolicy with their bindings, and the expressions
that webhooks name in `matchConditions`. Imported with the first of them.

`configured` reads policies and bindings once, `language` compiles expressions, `inputs` is what they see of a write,
`evaluation` runs them, `validating` and `mutating` say what follows: all pure. `deciding` says where they run,
`dispatch` is the shell.
"""
