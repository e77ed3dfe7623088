"""Measures how well lastcall names causes: applications are broken on purpose, so that the truth is known.

    python -m bench.diagnosis --kernel 120 --seed 7

`shapes.py` draws a sound application, `faults.py` breaks it, `running.py` has lastcall look at it, and `judge.py`
compares what lastcall says with what was injected. docs/diagnosis.md shows the result.
"""
