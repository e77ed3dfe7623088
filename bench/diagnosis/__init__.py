"""Measures how well lastcall names causes: applications are broken on purpose, so that the truth is known.

    python -m bench.diagnosis --kernel 120 --seed 7

`shapes.py` draws a sound application, `faults_*.py` break it, `running.py` has lastcall look at it, and `judge.py`
compares what lastcall says with what was injected. docs/diagnosis.md shows the result.

What counts as naming a fault:

- One of its ids, as a finding of any severity. What a fault leads to (`symptoms`) is true, but no answer.
- An id of `worded`, such as `crashed`, if its advice says exactly what is broken: the interpreter that is missing.
- A rule of `lastcall lint` that means this fault. A rule that means another one is no wrong answer: it is about the
  manifest, not about what happened.

What counts as a repair:

- A patch that a finding has as data, or as YAML in its sentence, if the application is well with it and nothing names
  the fault any more. Changes of other findings count, too, after those of the one that names the fault.
- A verb for the program that repairs this fault, with the words beside it that the fault `needs`: `finishRequests`
  repairs an HTTP/2 server only together with GOAWAY.
- Where nobody but the author can make the repair, advice that names it (`by_words`): the ConfigMap that is missing,
  the port on which the program listens. What the program printed is no advice about its port.

An error of a command that never got to a DELETE, and a note of a rollout, have sentences only, and no change as data:
they are read as a person reads them, by the same rules.
"""
