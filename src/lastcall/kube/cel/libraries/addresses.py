"""IP addresses and CIDR blocks as Go reads them, with its words for what is wrong (net/netip)."""

from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface

from lastcall.kube.api.field import go_quote

HEX = frozenset("0123456789abcdefABCDEF")
DIGITS = frozenset("0123456789")


class AddressError(ValueError):
    """Go's words."""


def wrong(text: str, what: str, at: str = "") -> AddressError:
    where = f" (at {go_quote(at)})" if at else ""
    return AddressError(f"ParseAddr({go_quote(text)}): {what}{where}")


def parse_address(text: str) -> tuple[IPv4Address | IPv6Address, str]:
    """Parse an address and its zone ("" for none). Raises AddressError. (netip.ParseAddr)"""
    for sign in text:
        if sign == ".":
            return IPv4Address(bytes(four(text, text))), ""
        if sign == ":":
            return six(text)
        if sign == "%":
            raise wrong(text, "missing IPv6 address")
    raise wrong(text, "unable to parse IP")


def four(whole: str, text: str) -> list[int]:
    """Parse the four numbers of an IPv4 address, which may be at the end of an IPv6 address."""
    fields: list[int] = []
    value, digits = 0, 0
    for at, sign in enumerate(text):
        if sign in DIGITS:
            if digits == 1 and value == 0:
                raise wrong(whole, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(sign), digits + 1
            if value > 255:
                raise wrong(whole, "IPv4 field has value >255")
        elif sign == ".":
            if at in (0, len(text) - 1) or text[at - 1] == ".":
                raise wrong(whole, "IPv4 field must have at least one digit", text[at:])
            if len(fields) == 3:
                raise wrong(whole, "IPv4 address too long")
            fields.append(value)
            value, digits = 0, 0
        else:
            raise wrong(whole, "unexpected character", text[at:])
    if len(fields) < 3:
        raise wrong(whole, "IPv4 address too short")
    return [*fields, value]


def six(whole: str) -> tuple[IPv6Address, str]:
    rest, percent, zone = whole.partition("%")
    if percent and not zone:
        raise wrong(whole, "zone must be a non-empty string")
    groups: list[int] = []
    gap = -1
    if rest.startswith("::"):
        gap, rest = 0, rest[2:]
        if not rest:
            return IPv6Address(0), zone
    while len(groups) < 8:
        end = _digits_of(whole, rest)
        if rest[end : end + 1] == ".":
            groups += _embedded(whole, rest, len(groups), has_gap=gap >= 0)
            rest = ""
            break
        groups.append(int(rest[:end], 16))
        rest = rest[end:]
        if not rest:
            break
        rest = _after_colon(whole, rest)
        if rest[0] == ":":
            if gap >= 0:
                raise wrong(whole, "multiple :: in address", rest)
            gap, rest = len(groups), rest[1:]
            if not rest:
                break
    if rest:
        raise wrong(whole, "trailing garbage after address", rest)
    if len(groups) < 8:
        if gap < 0:
            raise wrong(whole, "address string too short")
        groups[gap:gap] = [0] * (8 - len(groups))
    elif gap >= 0:
        raise wrong(whole, "the :: must expand to at least one field of zeros")
    return IPv6Address(b"".join(group.to_bytes(2, "big") for group in groups)), zone


def _digits_of(whole: str, rest: str) -> int:
    """Return the number of digits of the first group of `rest`."""
    end = next((at for at, sign in enumerate(rest) if sign not in HEX), len(rest))
    if end > 4:
        raise wrong(whole, "each group must have 4 or less digits", rest)
    if not end:
        raise wrong(whole, "each colon-separated field must have at least one digit", rest)
    return end


def _after_colon(whole: str, rest: str) -> str:
    if rest[0] != ":":
        raise wrong(whole, "unexpected character, want colon", rest)
    if len(rest) == 1:
        raise wrong(whole, "colon must be followed by more characters", rest)
    return rest[1:]


def _embedded(whole: str, rest: str, groups: int, *, has_gap: bool) -> list[int]:
    """Return the two groups of an IPv4 address that follows `groups` others."""
    if not has_gap and groups != 6:
        raise wrong(whole, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if groups > 6:
        raise wrong(whole, "too many hex fields to fit an embedded IPv4 address at the end", rest)
    numbers = four(whole, rest)
    return [numbers[0] * 256 + numbers[1], numbers[2] * 256 + numbers[3]]


def parse_prefix(text: str) -> IPv4Interface | IPv6Interface:
    """Parse an address with its prefix length. Raises AddressError. (netip.ParsePrefix)"""
    head, slash, bits = text.rpartition("/")
    if not slash:
        raise prefix_error(text, "no '/'")
    try:
        address, zone = parse_address(head)
    except AddressError as error:
        raise prefix_error(text, str(error)) from None
    if zone:
        raise prefix_error(text, "IPv6 zones cannot be present in a prefix")
    if not bits or not DIGITS.issuperset(bits) or (len(bits) > 1 and bits[0] == "0") or len(bits) > 18:
        raise prefix_error(text, f"bad bits after slash: {go_quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise prefix_error(text, "prefix length out of range")
    if isinstance(address, IPv4Address):
        return IPv4Interface((address, int(bits)))
    return IPv6Interface((address, int(bits)))


def prefix_error(text: str, what: str) -> AddressError:
    return AddressError(f"netip.ParsePrefix({go_quote(text)}): {what}")
