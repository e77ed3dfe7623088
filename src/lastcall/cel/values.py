"""What an expression computes with. CEL's values are Python's where Python's are exact enough:

    null None · bool bool · int int (checked to 64 bits by what computes) · uint Uint · double float · string str ·
    bytes bytes · list Sequence · map Mapping (`running` says how 1, 1u, 1.0 and true stay apart as keys) ·
    timestamp Timestamp · duration Duration · type Type · optional Optional · opaque types: classes of the libraries.

Objects of the API come as the dicts and lists that JSON made of them, never copied; `running` reads them through the
type that the checker gave them.
"""

from typing import TypeAlias


class Uint(int):
    """An unsigned integer of 64 bits: a type of its own, equal to the int and the double of the same value."""

    __slots__ = ()


Scalar: TypeAlias = bool | int | Uint | float | str | bytes | None
