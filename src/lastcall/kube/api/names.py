"""Names and keys: what Kubernetes accepts, and its words when it does not.

Every check answers a list of problem texts, empty when the value is fine. Source: apimachinery
pkg/util/validation/validation.go, pkg/api/validation/generic.go.
"""

import ipaddress
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

Check = Callable[[str], list[str]]
"""A check of one string: problem texts, empty when it is fine."""

DNS1123_LABEL_MAX = 63
DNS1123_SUBDOMAIN_MAX = 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED = rf"{_UNDERSCORED_LABEL}(\.{_UNDERSCORED_LABEL})*"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"

_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_ENV_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_LINK_LOCAL_MULTICAST = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
_PORT_CHARSET = re.compile("[-a-z0-9]+")
_PORT_LETTER = re.compile("[a-z]")


def max_length(length: int) -> str:
    return f"must be no more than {length} characters"


def _most_bytes(length: int) -> str:
    return f"must be no more than {length} bytes"


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def regex_text(message: str, pattern: str, *examples: str) -> str:
    """Return the text of a pattern that does not match. (`validation.RegexError`)"""
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{message} (e.g. {shown}, regex used for validation is '{pattern}')"


def is_dns1123_label(value: str) -> list[str]:
    problems = [max_length(DNS1123_LABEL_MAX)] if len(value) > DNS1123_LABEL_MAX else []
    if not re.fullmatch(_LABEL, value):
        if re.fullmatch(_SUBDOMAIN, value):
            return [*problems, "must not contain dots"]
        text = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
            "and end with an alphanumeric character"
        )
        problems.append(regex_text(text, _LABEL, "my-name", "123-abc"))
    return problems


def is_dns1123_subdomain(value: str) -> list[str]:
    problems = [max_length(DNS1123_SUBDOMAIN_MAX)] if len(value) > DNS1123_SUBDOMAIN_MAX else []
    if not re.fullmatch(_SUBDOMAIN, value):
        text = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character"
        )
        problems.append(regex_text(text, _SUBDOMAIN, "example.com"))
    return problems


def is_search_domain(value: str) -> list[str]:
    """Check a search domain. (`IsDNS1123SubdomainWithUnderscore`, gate RelaxedDNSSearchValidation)"""
    problems = [max_length(DNS1123_SUBDOMAIN_MAX)] if len(value) > DNS1123_SUBDOMAIN_MAX else []
    if not re.fullmatch(_UNDERSCORED, value):
        text = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
            "must start and end with an alphanumeric character"
        )
        problems.append(regex_text(text, _UNDERSCORED, "example.com"))
    return problems


def is_dns1035_label(value: str) -> list[str]:
    problems = [max_length(DNS1123_LABEL_MAX)] if len(value) > DNS1123_LABEL_MAX else []
    if not re.fullmatch(_DNS1035, value):
        text = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character"
        )
        problems.append(regex_text(text, _DNS1035, "my-name", "abc-123"))
    return problems


def is_qualified_name(value: str) -> list[str]:
    """Check a label key, annotation key or finalizer: `[prefix/]name`."""
    parts = value.split("/")
    problems: list[str] = []
    if len(parts) > 2:
        shape = regex_text(_QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
        return [f"a valid label key {shape} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            replaced = {max_length(DNS1123_SUBDOMAIN_MAX): _most_bytes(DNS1123_SUBDOMAIN_MAX)}
            problems += [f"prefix part {replaced.get(problem, problem)}" for problem in is_dns1123_subdomain(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > DNS1123_LABEL_MAX:
        problems.append(f"name part {_most_bytes(DNS1123_LABEL_MAX)}")
    if not re.fullmatch(_QUALIFIED, name):
        shape = regex_text(_QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
        problems.append(f"name part {shape}")
    return problems


def is_label_value(value: str) -> list[str]:
    problems = [_most_bytes(DNS1123_LABEL_MAX)] if len(value.encode()) > DNS1123_LABEL_MAX else []
    if not re.fullmatch(_LABEL_VALUE, value):
        text = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character"
        )
        problems.append(regex_text(text, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return problems


def is_config_map_key(value: str) -> list[str]:
    """Check a key of ConfigMap or Secret data, which becomes a file name."""
    problems = [max_length(DNS1123_SUBDOMAIN_MAX)] if len(value) > DNS1123_SUBDOMAIN_MAX else []
    if not re.fullmatch(_CONFIG_KEY, value):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(regex_text(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value in (".", ".."):
        problems.append(f"must not be '{value}'")
    elif value.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def is_env_var_name(value: str) -> list[str]:
    """Check for printable ASCII without `=` (the relaxed rule, GA in 1.34)."""
    problems = ["environment variable name must be non-empty"] if not value else []
    if any(not " " <= char <= "~" or char == "=" for char in value):
        problems.append(_ENV_TEXT)
    return problems


def is_http_header_name(value: str) -> list[str]:
    if re.fullmatch(_HEADER, value):
        return []
    text = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [regex_text(text, _HEADER, "X-Header-Name")]


def is_port_number(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else [between(1, 65535)]


def is_port_name(value: str) -> list[str]:
    problems = [max_length(15)] if len(value) > 15 else []
    if not _PORT_CHARSET.fullmatch(value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _PORT_LETTER.search(value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value[:1] == "-" or value[-1:] == "-":
        problems.append("must not begin or end with a hyphen")
    return problems


def is_wildcard(value: str) -> list[str]:
    """Check a wildcard host such as `*.example.com`. (`IsWildcardDNS1123Subdomain`)"""
    pattern = rf"\*\.{_SUBDOMAIN}"
    problems = [max_length(DNS1123_SUBDOMAIN_MAX)] if len(value) > DNS1123_SUBDOMAIN_MAX else []
    if not re.fullmatch(pattern, value):
        text = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
        )
        problems.append(regex_text(text, pattern, "*.example.com"))
    return problems


def is_ip(value: str) -> list[str]:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


def is_strict_ip(value: str) -> list[str]:
    """Check an address as new fields accept it. (`IsValidIP`)"""
    if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", value) and re.search(r"(?:^|\.)0\d", value):
        return ["must not have leading 0s"]
    if problems := is_ip(value):
        return problems
    if ":" in value and ipaddress.IPv6Address(value).ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def is_cidr(value: str) -> list[str]:
    try:
        if "/" not in value:
            raise ValueError(value)
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    return []


def is_endpoint_ip(value: str) -> list[str]:
    """Check whether a valid address can be an endpoint's. (`ValidateEndpointIP`)"""
    address = ipaddress.ip_address(value)
    problems: list[str] = []
    if address.is_unspecified:
        problems.append(f"may not be unspecified ({value})")
    if address.is_loopback:
        problems.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        problems.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if address in _LINK_LOCAL_MULTICAST[address.version]:
        problems.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return problems


def is_path_segment_name(value: str) -> list[str]:
    """Check what every object name obeys, whatever its kind. (`path.IsValidPathSegmentName`)"""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{char}'" for char in ("/", "%") if char in value]


def for_prefix(check: Check) -> Check:
    """Return `check` for a `generateName`: a trailing hyphen is fine. (`maskTrailingDash`)"""

    def masked(value: str) -> list[str]:
        return check(value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value)

    return masked


_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5


def random_suffix(source: "Random", length: int = _SUFFIX_LENGTH) -> str:
    """Choose characters that form no words. (`utilrand.String`)"""
    # What `source.choice` does for each of them, in a fifth of its time.
    bits, known, found = source.getrandbits, len(_SUFFIX_ALPHABET), ""
    while len(found) < length:
        if (number := bits(known.bit_length())) < known:
            found += _SUFFIX_ALPHABET[number]
    return found


def generate_name(base: str, source: "Random") -> str:
    """Return `base`, cut to 58 characters, and five more. (`names.SimpleNameGenerator`)"""
    return base[: DNS1123_LABEL_MAX - _SUFFIX_LENGTH] + random_suffix(source)
