"""Rules about the project's source that no linter here can express. `python -m checks` lists every violation.

`source.py` reads and parses each file once, `markers.py` reads the exceptions that stand in the files themselves, and
each other module has a rule or a small family. `__main__.py` lists the rules.
"""
