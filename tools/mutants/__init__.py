"""Measure what the pure tests hold: change one thing in a function, and see whether a test fails (`make mutants`).

`operators.py` (what is changed), `sites.py` (where, and how the changed code is compiled), `choosing.py` (which mutants
and which tests) and `results.py` (what a run came to) are pure. `touching.py` learns which tests touch which lines,
`trials.py` forks for each mutant, `driver.py` runs inside pytest, `sandbox.py` keeps mutants from harming the machine.

Mutated are the bodies of functions and methods. Code of modules and of class bodies, decorators and defaults of
parameters are not: they run once, when everything is imported, before any mutant exists.
"""
