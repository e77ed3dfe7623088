"""IP addresses (apiserver pkg/cel/library/ip.go)."""

from lastcall.cel.libraries.library import Library, declared
from lastcall.cel.types import opaque

ROWS = """
ip                    string_to_ip                (string) -> IP
family                ip_family                   IP.() -> int
ip.isCanonical        ip_is_canonical             (string) -> bool
isUnspecified         ip_is_unspecified           IP.() -> bool
isLoopback            ip_is_loopback              IP.() -> bool
isLinkLocalMulticast  ip_is_link_local_multicast  IP.() -> bool
isLinkLocalUnicast    ip_is_link_local_unicast    IP.() -> bool
isGlobalUnicast       ip_is_global_unicast        IP.() -> bool
isIP                  is_ip                       (string) -> bool
string                ip_to_string                (IP) -> string
"""

LIBRARY = Library("ip", declared(ROWS), types={"net.IP": opaque("net.IP")})
