"""CIDR blocks (apiserver pkg/cel/library/cidr.go)."""

from lastcall.cel.libraries.library import Library, declared
from lastcall.cel.types import opaque

ROWS = """
cidr          string_to_cidr             (string) -> CIDR
containsIP    cidr_contains_ip_string    CIDR.(string) -> bool
containsIP    cidr_contains_ip_ip        CIDR.(IP) -> bool
containsCIDR  cidr_contains_cidr_string  CIDR.(string) -> bool
containsCIDR  cidr_contains_cidr         CIDR.(CIDR) -> bool
ip            cidr_ip                    CIDR.() -> IP
prefixLength  cidr_prefix_length         CIDR.() -> int
masked        cidr_masked                CIDR.() -> CIDR
isCIDR        is_cidr                    (string) -> bool
string        cidr_to_string             (CIDR) -> string
"""

LIBRARY = Library("cidr", declared(ROWS), types={"net.CIDR": opaque("net.CIDR")})
