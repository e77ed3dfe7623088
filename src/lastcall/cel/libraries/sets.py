"""Lists as sets (cel-go ext/sets.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
sets.contains    list_sets_contains_list    (list(T), list(T)) -> bool
sets.equivalent  list_sets_equivalent_list  (list(T), list(T)) -> bool
sets.intersects  list_sets_intersects_list  (list(T), list(T)) -> bool
"""

LIBRARY = Library("sets", declared(ROWS))
