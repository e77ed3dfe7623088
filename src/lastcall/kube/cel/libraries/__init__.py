"""The functions of CEL by library: how they are declared, what they do, what they cost, what they will cost.

Each module exports its `LIBRARY` (`library.Library`); `every` has them all.
"""
