"""The ServiceAccount key: OpenSSL by ctypes and `cryptography` do the same."""

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from lastcall.apiserver import signing
from lastcall.apiserver.signing import coordinates, load_signing_key, raw_signature
from lastcall.apiserver.tokens import TokenIssuer
from lastcall.world.world import World


@pytest.fixture(params=["openssl", "cryptography"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "cryptography":

        def hidden() -> None:
            raise AttributeError("undefined symbol")

        monkeypatch.setattr(signing, "_openssl", hidden)
    return request.param


def pem(key, encryption=None, form=PrivateFormat.PKCS8) -> bytes:
    return key.private_bytes(Encoding.PEM, form, encryption or NoEncryption())


def test_python_s_own_openssl_is_found_here() -> None:
    assert "EVP_DigestSign" in signing._openssl()


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_a_signature_is_good_by_the_public_key(way: str, form: PrivateFormat) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    key = load_signing_key(pem(private, form=form))
    public = private.public_key()
    assert key.public_der == public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    numbers = public.public_numbers()
    assert [int.from_bytes(each, "big") for each in coordinates(key.public_der)] == [numbers.x, numbers.y]
    for number in range(100):  # r and s are of other lengths each time
        signature = key.sign(b"message %d" % number)
        assert len(signature) == 64
        r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
        public.verify(encode_dss_signature(r, s), b"message %d" % number, ec.ECDSA(SHA256()))


@pytest.mark.parametrize(
    ("r", "s"), [(1, 1), (127, 128), (2**255, 2**256 - 1), (2**248 - 1, 2**120), (2**256 - 1, 2**256 - 1)]
)
def test_both_integers_become_32_bytes(r: int, s: int) -> None:
    assert raw_signature(encode_dss_signature(r, s)) == r.to_bytes(32, "big") + s.to_bytes(32, "big")


@pytest.mark.parametrize("kind", ["another curve", "RSA", "with a passphrase", "garbage", "empty"])
def test_anything_else_is_refused(way: str, kind: str) -> None:
    content = {
        "another curve": lambda: pem(ec.generate_private_key(ec.SECP384R1())),
        "RSA": lambda: pem(rsa.generate_private_key(65537, 2048)),
        "with a passphrase": lambda: pem(ec.generate_private_key(ec.SECP256R1()), BestAvailableEncryption(b"x")),
        "garbage": lambda: b"-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n",
        "empty": lambda: b"",
    }[kind]()
    with pytest.raises(ValueError, match=r"ServiceAccount key|Unable to load|Could not deserialize|PEM"):
        load_signing_key(content)


def test_any_library_accepts_the_token(way: str) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    issuer = TokenIssuer.load(World(), "https://issuer", pem(private))
    account = {"metadata": {"name": "default", "namespace": "ns", "uid": "u"}}
    token = issuer.issue(account, audiences=["vault"], seconds=600)
    key = jwt.PyJWK(issuer.jwks()["keys"][0]).key
    assert jwt.decode(token, key, algorithms=["ES256"], audience="vault")["sub"] == "system:serviceaccount:ns:default"
