"""Make a wheel small: no comments (`trim`), and compressed as well as deflate can, 2 % better than zlib."""

import hashlib
import struct
import zipfile
import zlib
from base64 import urlsafe_b64encode
from pathlib import Path

import deflate
from trim import is_trimmed, trim

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_NEEDS = 20  # deflate
_UTF8 = 1 << 11


def repack(wheel: Path) -> None:
    """Write every file of a wheel anew, in the same order, with the same times and permissions (APPNOTE.TXT 4.3)."""
    out, directory = bytearray(), bytearray()
    with zipfile.ZipFile(wheel) as archive:
        files = archive.infolist()
        contents = _trimmed({each.filename: archive.read(each) for each in files})
        for each in files:
            content, name = contents[each.filename], each.filename.encode()
            packed, method = bytes(deflate.deflate_compress(content, 12)), zipfile.ZIP_DEFLATED
            if len(packed) >= len(content):
                packed, method = content, zipfile.ZIP_STORED
            sizes = (zlib.crc32(content), len(packed), len(content))
            common = (_NEEDS, _UTF8, method, *_moment(each), *sizes, len(name), 0)
            place = len(out)
            out += _LOCAL.pack(b"PK\3\4", *common) + name + packed
            made_by = each.create_system << 8 | _NEEDS
            directory += _CENTRAL.pack(b"PK\1\2", made_by, *common, 0, 0, 0, each.external_attr, place) + name
    count = len(files)
    out += directory + _END.pack(b"PK\5\6", 0, 0, count, count, len(directory), len(out), 0)
    wheel.write_bytes(out)


def _trimmed(contents: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files as they are published, and RECORD with their sums ("Recording installed projects")."""
    made = {
        name: trim(content.decode(), package=name.endswith("/__init__.py")).encode() if is_trimmed(name) else content
        for name, content in contents.items()
    }
    for record in (name for name in made if name.endswith(".dist-info/RECORD")):
        lines = (f"{name},sha256={_sum(content)},{len(content)}\n" for name, content in made.items() if name != record)
        made[record] = f"{''.join(lines)}{record},,\n".encode()
    return made


def _sum(content: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def _moment(each: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the time and the date as MS-DOS has them."""
    year, month, day, hour, minute, second = each.date_time
    return hour << 11 | minute << 5 | second // 2, year - 1980 << 9 | month << 5 | day
