"""Quantities of resources (apiserver pkg/cel/library/quantity.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
quantity            string_to_quantity        (string) -> Quantity
isQuantity          is_quantity_string        (string) -> bool
sign                quantity_sign             Quantity.() -> int
isGreaterThan       quantity_is_greater_than  Quantity.(Quantity) -> bool
isLessThan          quantity_is_less_than     Quantity.(Quantity) -> bool
compareTo           quantity_compare_to       Quantity.(Quantity) -> int
asApproximateFloat  quantity_get_float        Quantity.() -> double
asInteger           quantity_get_int          Quantity.() -> int
isInteger           quantity_is_integer       Quantity.() -> bool
add                 quantity_add              Quantity.(Quantity) -> Quantity
add                 quantity_add_int          Quantity.(int) -> Quantity
sub                 quantity_sub              Quantity.(Quantity) -> Quantity
sub                 quantity_sub_int          Quantity.(int) -> Quantity
"""

LIBRARY = Library("quantity", declared(ROWS))
