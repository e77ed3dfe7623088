"""The wire format of protobuf, the part that is written here: numbers of variable length, and what they delimit."""


def varint(number: int) -> bytes:
    """Encode seven bits a byte, the lowest first; a negative number as the 64 bits of its two's complement."""
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def delimited(field: int, data: bytes) -> bytes:
    """Return a field with a length prefix: bytes, text, a message."""
    return varint(field << 3 | 2) + varint(len(data)) + data
