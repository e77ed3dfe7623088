"""Lists whose elements compare: sums, extremes, order, places (apiserver pkg/cel/library/lists.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
isSorted     list_int_is_sorted_bool        list(int).() -> bool
isSorted     list_uint_is_sorted_bool       list(uint).() -> bool
isSorted     list_double_is_sorted_bool     list(double).() -> bool
isSorted     list_bool_is_sorted_bool       list(bool).() -> bool
isSorted     list_duration_is_sorted_bool   list(duration).() -> bool
isSorted     list_timestamp_is_sorted_bool  list(timestamp).() -> bool
isSorted     list_string_is_sorted_bool     list(string).() -> bool
isSorted     list_bytes_is_sorted_bool      list(bytes).() -> bool
sum          list_int_sum_int               list(int).() -> int
sum          list_uint_sum_uint             list(uint).() -> uint
sum          list_double_sum_double         list(double).() -> double
sum          list_duration_sum_duration     list(duration).() -> duration
max          list_int_max_int               list(int).() -> int
max          list_uint_max_uint             list(uint).() -> uint
max          list_double_max_double         list(double).() -> double
max          list_bool_max_bool             list(bool).() -> bool
max          list_duration_max_duration     list(duration).() -> duration
max          list_timestamp_max_timestamp   list(timestamp).() -> timestamp
max          list_string_max_string         list(string).() -> string
max          list_bytes_max_bytes           list(bytes).() -> bytes
min          list_int_min_int               list(int).() -> int
min          list_uint_min_uint             list(uint).() -> uint
min          list_double_min_double         list(double).() -> double
min          list_bool_min_bool             list(bool).() -> bool
min          list_duration_min_duration     list(duration).() -> duration
min          list_timestamp_min_timestamp   list(timestamp).() -> timestamp
min          list_string_min_string         list(string).() -> string
min          list_bytes_min_bytes           list(bytes).() -> bytes
indexOf      list_a_index_of_int            list(A).(A) -> int
lastIndexOf  list_a_last_index_of_int       list(A).(A) -> int
"""

LIBRARY = Library("comparable", declared(ROWS))
