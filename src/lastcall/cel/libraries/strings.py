"""Strings, version 2 (it has format, quote and join, but no reverse) (cel-go ext/strings.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
charAt         string_char_at_int                string.(int) -> string
indexOf        string_index_of_string            string.(string) -> int
indexOf        string_index_of_string_int        string.(string, int) -> int
lastIndexOf    string_last_index_of_string       string.(string) -> int
lastIndexOf    string_last_index_of_string_int   string.(string, int) -> int
lowerAscii     string_lower_ascii                string.() -> string
replace        string_replace_string_string      string.(string, string) -> string
replace        string_replace_string_string_int  string.(string, string, int) -> string
split          string_split_string               string.(string) -> list(string)
split          string_split_string_int           string.(string, int) -> list(string)
substring      string_substring_int              string.(int) -> string
substring      string_substring_int_int          string.(int, int) -> string
trim           string_trim                       string.() -> string
upperAscii     string_upper_ascii                string.() -> string
format         string_format                     string.(list(dyn)) -> string
strings.quote  strings_quote                     (string) -> string
join           list_join                         list(string).() -> string
join           list_join_string                  list(string).(string) -> string
"""

LIBRARY = Library("strings", declared(ROWS))
