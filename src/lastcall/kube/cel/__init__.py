"""CEL, the expression language of Kubernetes 1.36: parse, check, estimate the cost, run with a limit of cost.

    environment = Environment(variables={"object": types.DYN}, libraries=KUBERNETES)
    program = environment.compile("object.spec.replicas <= 5")     # CompileError says why not, in cel-go's words
    program.run({"object": pod}, limit=1_000_000)                   # Outcome(value, cost)

`ast` and `types` are what everything else agrees on. `parsing` and `checking` make and type a tree, `running` turns
a checked tree into functions, `libraries` hold the declarations of functions (types, overloads) together with what
they do and what they cost. Nothing here knows the API server; nothing here does I/O.

Source of the language: cel-spec; of words, order and costs: cel-go v0.26 as kube-apiserver v1.36.2 is built with it.
"""
