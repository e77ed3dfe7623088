"""URLs (apiserver pkg/cel/library/urls.go)."""

from lastcall.cel.libraries.library import Library, declared

ROWS = """
url             string_to_url         (string) -> URL
getScheme       url_get_scheme        URL.() -> string
getHost         url_get_host          URL.() -> string
getHostname     url_get_hostname      URL.() -> string
getPort         url_get_port          URL.() -> string
getEscapedPath  url_get_escaped_path  URL.() -> string
getQuery        url_get_query         URL.() -> map(string, list(string))
isURL           is_url_string         (string) -> bool
"""

LIBRARY = Library("url", declared(ROWS))
