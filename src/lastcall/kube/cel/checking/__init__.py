"""From a tree to a tree with types: `checker` finds the type of each node and the overloads of each call,
`unification` says which types fit which, `validators` look at literals that functions would refuse.
"""
