"""Lists, version 3 (cel-go ext/lists.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
slice                  list_slice                                           list(T).(int, int) -> list(T)
flatten                list_flatten                                         list(list(T)).() -> list(T)
flatten                list_flatten_int                                     list(dyn).(int) -> list(dyn)
sort                   list_int_sort                                        list(int).() -> list(int)
sort                   list_uint_sort                                       list(uint).() -> list(uint)
sort                   list_double_sort                                     list(double).() -> list(double)
sort                   list_bool_sort                                       list(bool).() -> list(bool)
sort                   list_google.protobuf.Duration_sort                   list(duration).() -> list(duration)
sort                   list_google.protobuf.Timestamp_sort                  list(timestamp).() -> list(timestamp)
sort                   list_string_sort                                     list(string).() -> list(string)
sort                   list_bytes_sort                                      list(bytes).() -> list(bytes)
@sortByAssociatedKeys  list_int_sortByAssociatedKeys                        list(T).(list(int)) -> list(T)
@sortByAssociatedKeys  list_uint_sortByAssociatedKeys                       list(T).(list(uint)) -> list(T)
@sortByAssociatedKeys  list_double_sortByAssociatedKeys                     list(T).(list(double)) -> list(T)
@sortByAssociatedKeys  list_bool_sortByAssociatedKeys                       list(T).(list(bool)) -> list(T)
@sortByAssociatedKeys  list_google.protobuf.Duration_sortByAssociatedKeys   list(T).(list(duration)) -> list(T)
@sortByAssociatedKeys  list_google.protobuf.Timestamp_sortByAssociatedKeys  list(T).(list(timestamp)) -> list(T)
@sortByAssociatedKeys  list_string_sortByAssociatedKeys                     list(T).(list(string)) -> list(T)
@sortByAssociatedKeys  list_bytes_sortByAssociatedKeys                      list(T).(list(bytes)) -> list(T)
lists.range            lists_range                                          (int) -> list(int)
reverse                list_reverse                                         list(T).() -> list(T)
distinct               list_distinct                                        list(T).() -> list(T)
"""

LIBRARY = Library("lists", declared(ROWS))
