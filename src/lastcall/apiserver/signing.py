"""Signing with an EC P-256 key (ES256 of RFC 7518), by the OpenSSL that Python's own `ssl` is linked with.

The control plane signs a token for each Pod; for that alone `cryptography` would cost every start 60 ms and the process
9 MB, as it brings an OpenSSL of its own. Where Python's hides its functions (it may be linked statically), it is
`cryptography` after all.
"""

import ctypes
from collections.abc import Callable
from typing import Any, Protocol

_SUBJECT_PUBLIC_KEY_INFO = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
"""What every P-256 public key in DER begins with (RFC 5480); x and y follow, 32 bytes each."""

_SIGNATURE_ROOM = 80
"""More than a signature in DER takes: two integers of at most 33 bytes."""


class SigningKey(Protocol):
    """A private key. `public_der` is its public half as DER SubjectPublicKeyInfo."""

    public_der: bytes

    def sign(self, message: bytes) -> bytes:
        """r and s of ECDSA with SHA-256, 32 bytes each."""
        ...


def load_signing_key(pem: bytes) -> SigningKey:
    """Raises ValueError for anything but an unencrypted EC P-256 private key."""
    try:
        openssl = _openssl()
    except (ImportError, OSError, AttributeError):
        key: SigningKey = _CryptographyKey(pem)
    else:
        key = _OpenSSLKey(openssl, pem)
    if not key.public_der.startswith(_SUBJECT_PUBLIC_KEY_INFO):
        raise ValueError("the ServiceAccount key must be an EC P-256 private key")
    return key


def coordinates(public_der: bytes) -> tuple[bytes, bytes]:
    """x and y of a P-256 public key."""
    point = public_der[len(_SUBJECT_PUBLIC_KEY_INFO) :]
    return point[:32], point[32:]


def raw_signature(der: bytes) -> bytes:
    """r and s, 32 bytes each, of an ECDSA signature in DER (SEQUENCE of two INTEGERs, all lengths below 128)."""
    r_end = 4 + der[3]
    r, s = der[4:r_end], der[r_end + 2 : r_end + 2 + der[r_end + 1]]
    return int.from_bytes(r, "big").to_bytes(32, "big") + int.from_bytes(s, "big").to_bytes(32, "big")


class _OpenSSLKey:
    """The key lives as long as the process: it is never freed."""

    def __init__(self, openssl: "dict[str, Callable[..., Any]]", pem: bytes) -> None:
        self._call = openssl
        bio = openssl["BIO_new_mem_buf"](pem, len(pem))
        # The last argument is the passphrase: without one OpenSSL would ask the terminal.
        self._key = openssl["PEM_read_bio_PrivateKey"](bio, None, None, b"")
        openssl["BIO_free"](bio)
        if not self._key:
            openssl["ERR_clear_error"]()
            raise ValueError("the ServiceAccount key must be an EC P-256 private key, in PEM and without a passphrase")
        self.public_der = self._public_der()

    def _public_der(self) -> bytes:
        length = self._call["i2d_PUBKEY"](self._key, None)
        if length <= 0:
            self._call["ERR_clear_error"]()
            return b""
        room = ctypes.create_string_buffer(length)
        self._call["i2d_PUBKEY"](self._key, ctypes.byref(ctypes.cast(room, ctypes.c_void_p)))
        return room.raw

    def sign(self, message: bytes) -> bytes:
        context = self._call["EVP_MD_CTX_new"]()
        room = ctypes.create_string_buffer(_SIGNATURE_ROOM)
        length = ctypes.c_size_t(_SIGNATURE_ROOM)
        try:
            good = self._call["EVP_DigestSignInit"](context, None, self._call["EVP_sha256"](), None, self._key) == 1
            good = good and self._call["EVP_DigestSign"](
                context, room, ctypes.byref(length), message, len(message)
            ) == 1  # fmt: skip
        finally:
            self._call["EVP_MD_CTX_free"](context)
        if not good:
            self._call["ERR_clear_error"]()
            raise RuntimeError("OpenSSL cannot sign with the ServiceAccount key")
        return raw_signature(room.raw[: length.value])


class _CryptographyKey:
    def __init__(self, pem: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

        try:
            key = load_pem_private_key(pem, None)
        except TypeError as error:
            raise ValueError(f"the ServiceAccount key cannot be read: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the ServiceAccount key must be an EC P-256 private key")
        self._key = key
        self.public_der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, message: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.hashes import SHA256

        return raw_signature(self._key.sign(message, ec.ECDSA(SHA256())))


_loaded: "dict[str, Callable[..., Any]]" = {}


def _openssl() -> "dict[str, Callable[..., Any]]":
    """The functions by name. Raises ImportError, OSError, AttributeError where they cannot be reached."""
    if not _loaded:
        import _ssl

        # What `_ssl` is linked with is looked through, too: no guessing of a library's name.
        library = ctypes.CDLL(_ssl.__file__)
        pointer, integer, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
        functions: dict[str, tuple[Any, list[Any]]] = {
            "BIO_new_mem_buf": (pointer, [ctypes.c_char_p, integer]),
            "BIO_free": (integer, [pointer]),
            "PEM_read_bio_PrivateKey": (pointer, [pointer, pointer, pointer, ctypes.c_char_p]),
            "i2d_PUBKEY": (integer, [pointer, pointer]),
            "EVP_sha256": (pointer, []),
            "EVP_MD_CTX_new": (pointer, []),
            "EVP_MD_CTX_free": (None, [pointer]),
            "EVP_DigestSignInit": (integer, [pointer, pointer, pointer, pointer, pointer]),
            "EVP_DigestSign": (integer, [pointer, pointer, pointer, ctypes.c_char_p, size]),
            "ERR_clear_error": (None, []),
        }
        found: dict[str, Callable[..., Any]] = {}
        for name, (result, arguments) in functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
            found[name] = function
        _loaded.update(found)
    return _loaded
