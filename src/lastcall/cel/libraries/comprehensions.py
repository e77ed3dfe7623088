"""What the macros of two variables build maps with (cel-go ext/comprehensions.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
cel.@mapInsert  @mapInsert_map_map        (map(K, V), map(K, V)) -> map(K, V)
cel.@mapInsert  @mapInsert_map_key_value  (map(K, V), K, V) -> map(K, V)
"""

LIBRARY = Library("comprehensions", declared(ROWS))
