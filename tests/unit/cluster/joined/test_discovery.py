"""A cluster is trusted when its cluster-info is signed with the token and has the authority of the hash."""

import base64

import pytest
from cryptography import x509

from lastcall.api.text.bootstrap_tokens import Token, detached_signature
from lastcall.apiserver.auth.pki import ClusterCA
from lastcall.cluster.joined.discovery import DiscoveryError, authority_of, checked_hashes, hash_of

TOKEN = Token("abcdef", "0123456789abcdef")
CA = ClusterCA.create()
INFO = (
    "clusters:\n- cluster:\n    certificate-authority-data: "
    f"{base64.b64encode(CA.certificate_pem).decode()}\n    server: https://x:6443\n"
)
DATA = {"kubeconfig": INFO, "jws-kubeconfig-abcdef": detached_signature(INFO, TOKEN)}
HASH = hash_of(x509.load_pem_x509_certificate(CA.certificate_pem))


def test_signature_and_hash_give_the_authority() -> None:
    assert authority_of(DATA, TOKEN, [HASH]) == CA.certificate_pem
    assert authority_of(DATA, TOKEN, []) == CA.certificate_pem, "--discovery-token-unsafe-skip-ca-verification"


@pytest.mark.parametrize(
    ("data", "hashes", "why"),
    [
        ({"kubeconfig": INFO}, [HASH], "does not know token abcdef"),
        ({**DATA, "kubeconfig": INFO + " "}, [HASH], "signed with another secret"),
        (DATA, ["sha256:" + "0" * 64], "another cluster answers"),
        ({"kubeconfig": "x", "jws-kubeconfig-abcdef": detached_signature("x", TOKEN)}, [], "no certificate authority"),
        ({}, [], "does not know token"),
    ],
)
def test_what_does_not_fit_is_told_with_its_reason(data: dict[str, str], hashes: list[str], why: str) -> None:
    with pytest.raises(DiscoveryError, match=why):
        authority_of(data, TOKEN, hashes)


def test_a_hash_is_sha256_and_64_digits() -> None:
    assert checked_hashes([HASH.upper().replace("SHA256", "sha256")]) == (HASH,)
    for wrong in ("", "sha256:12", "md5:" + "0" * 64, "sha256:" + "x" * 64):
        with pytest.raises(ValueError, match="64 hexadecimal"):
            checked_hashes([wrong])
