"""ServiceAccount tokens: JWTs signed with ES256 or RS256, bound to a ServiceAccount and maybe to a Pod, Secret or Node.

Sources: pkg/serviceaccount/{claims,jwt,openidmetadata}.go.
"""

# check: allow asyncio.to_thread because cryptography is loaded after the start

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lastcall.kube.api.meta import Object, uid_of
from lastcall.kube.api.resources import NODES, PODS, SECRETS, SERVICEACCOUNTS, Resource
from lastcall.kube.api.text.times import later, parse_rfc3339
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.world.clock import Clock, now
from lastcall.world.world import World

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

MIN_EXPIRATION = 600
DEFAULT_EXPIRATION = 3600
PROJECTED_EXPIRATION = 3607
"""This odd value distinguishes tokens of `kube-api-access-*` volumes (WarnOnlyBoundTokenExpirationPeriod)."""
EXTENDED_EXPIRATION = 365 * 24 * 3600
BOUND_LEEWAY = 60
"""How long a token outlives the deletionTimestamp of what it is bound to."""

VERIFIED_TOKENS = 4096

GetObject = Callable[[Resource, str, str], Awaitable[Object | None]]
"""(resource, namespace, name) → the object, None when it is not there."""

BOUND_KINDS = {"Pod": ("pod", PODS), "Secret": ("secret", SECRETS), "Node": ("node", NODES)}


class TokenIssuer:
    """Signs and checks the tokens of one issuer.

    The key is read when it is first needed, for reading it imports `cryptography`: a start does not wait for that.
    """

    def __init__(self, world: World, issuer: str, key_pem: bytes) -> None:
        self.world = world
        self.issuer = issuer
        self._key_pem = key_pem
        self.verified: dict[bytes, Object] = {}
        """The claims of tokens whose signature was good, by the token's SHA-256; the last `VERIFIED_TOKENS` of them."""

    async def prepare(self) -> None:
        """Import in a thread what the first token needs. Raises ValueError as `private_key` does."""
        await asyncio.to_thread(self._import)

    def _import(self) -> None:
        # late: in the thread of `prepare`
        import jwt.algorithms  # noqa: F401 # for `issue`

        assert self.key_id

    @cached_property
    def private_key(self) -> "ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey":
        """Return the key. Raises ValueError when it is not an EC P-256 or RSA private key in PEM, without a
        passphrase."""
        # late: in the thread of `prepare`
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(self._key_pem, None)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the ServiceAccount key cannot be read: {error}") from error
        if isinstance(key, rsa.RSAPrivateKey):
            return key
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
            raise ValueError("the ServiceAccount key must be an EC P-256 or an RSA private key")
        return key

    @property
    def algorithm(self) -> str:
        """Return the name of the signature's algorithm. (jwt.go:signerFromRSAPrivateKey, signerFromECDSAPrivateKey)"""
        return "ES256" if hasattr(self.private_key, "curve") else "RS256"

    @cached_property
    def key_id(self) -> str:
        """Return the id as Kubernetes derives it: the SHA-256 of the public key's DER."""
        # late: in the thread of `prepare`
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = self.private_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return _base64url(hashlib.sha256(public).digest())

    def issue(
        self,
        service_account: Object,
        *,
        audiences: Sequence[str],
        seconds: int,
        bound: tuple[str, Object] | None = None,
        node: Object | None = None,
    ) -> str:
        """Return a token for `service_account`. `bound` is (kind, object) of `BOUND_KINDS`; `node` is where a bound
        Pod runs.

        A token of a `kube-api-access-*` volume for this API server is good for a year, so that a client that never
        reloads it goes on working; `warnafter` says when it should have been replaced.
        """
        # late: in the thread of `prepare`
        import jwt

        meta = service_account["metadata"]
        issued = int(now(self.world.clock).timestamp())
        private: Object = {
            "namespace": meta["namespace"],
            "serviceaccount": {"name": meta["name"], "uid": uid_of(service_account)},
        }
        if bound is not None:
            kind, obj = bound
            private[BOUND_KINDS[kind][0]] = {"name": obj["metadata"]["name"], "uid": uid_of(obj)}
        if node is not None:
            private["node"] = {"name": node["metadata"]["name"], "uid": uid_of(node)}
        if seconds == PROJECTED_EXPIRATION and bound is not None and list(audiences) == [self.issuer]:
            private["warnafter"] = issued + seconds
            seconds = EXTENDED_EXPIRATION
        claims = {
            "aud": list(audiences),
            "exp": issued + seconds,
            "iat": issued,
            "iss": self.issuer,
            "jti": self.world.new_uid(),
            "kubernetes.io": private,
            "nbf": issued,
            "sub": f"system:serviceaccount:{meta['namespace']}:{meta['name']}",
        }
        return jwt.encode(claims, self.private_key, algorithm=self.algorithm, headers={"kid": self.key_id})

    def claims(self, token: str) -> Object | None:
        """Return the claims of a token that this issuer signed for itself and that has not expired, else None."""
        # A good signature stays good, and checking it is most of the work; everything else is judged each time.
        digest = hashlib.sha256(token.encode()).digest()
        claims = self.verified.get(digest)
        if claims is None:
            claims = self._signed_claims(token)
            if claims is None:
                return None
            if len(self.verified) >= VERIFIED_TOKENS:
                del self.verified[next(iter(self.verified))]
            self.verified[digest] = claims
        moment = now(self.world.clock).timestamp()
        return claims if claims.get("nbf", 0) <= moment < claims["exp"] else None

    def _signed_claims(self, token: str) -> Object | None:
        # late: in the thread of `prepare`
        import jwt

        try:
            claims: Object = jwt.decode(
                token,
                self.private_key.public_key(),
                algorithms=[self.algorithm],
                audience=self.issuer,
                issuer=self.issuer,
                # Time is judged below: the library reads the machine's clock, and time has one door.
                options={"verify_exp": False, "verify_nbf": False, "verify_iat": False, "require": ["exp", "sub"]},
            )
        except jwt.PyJWTError:
            return None
        return claims

    def jwks(self) -> Object:
        """Return the public key as a JSON Web Key Set."""
        numbers: Any = self.private_key.public_key().public_numbers()
        if self.algorithm == "ES256":
            shown = {
                "kty": "EC",
                "kid": self.key_id,
                "crv": "P-256",
                "alg": "ES256",
                "x": _base64url(numbers.x.to_bytes(32, "big")),
                "y": _base64url(numbers.y.to_bytes(32, "big")),
            }
        else:
            shown = {"kty": "RSA", "kid": self.key_id, "alg": "RS256"}
            shown |= {each: _base64url(_shortest(getattr(numbers, each))) for each in ("n", "e")}
        return {"keys": [{"use": "sig", **shown}]}

    def configuration(self, address: str) -> Object:
        """Return the OpenID discovery document; `address` is `host:port` of this server as the client knows it."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"https://{address}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self.algorithm],
        }


def _shortest(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class ServiceAccountVerifier:
    """Checks tokens against what exists now: the ServiceAccount and the bound object must live, with the same uid."""

    def __init__(self, issuer: TokenIssuer, clock: Clock, get: GetObject) -> None:
        self._issuer = issuer
        self._clock = clock
        self._get = get

    async def verify(self, token: str) -> UserInfo | None:
        claims = self._issuer.claims(token)
        if claims is None:
            return None
        private: Any = claims.get("kubernetes.io") or {}
        account = private.get("serviceaccount") or {}
        namespace, name = private.get("namespace", ""), account.get("name", "")
        if not await self._lives(SERVICEACCOUNTS, namespace, account):
            return None
        extra: dict[str, Sequence[str]] = {}
        if jti := claims.get("jti"):
            extra["authentication.kubernetes.io/credential-id"] = [f"JTI={jti}"]
        for claim, resource in BOUND_KINDS.values():
            reference = private.get(claim)
            if not reference:
                continue
            if not await self._lives(resource, namespace if resource.namespaced else "", reference):
                # A Pod's token also names the Pod's node, which may have been replaced without harm.
                if claim == "node" and private.get("pod"):
                    continue
                return None
            if claim != "secret":
                extra[f"authentication.kubernetes.io/{claim}-name"] = [reference["name"]]
                extra[f"authentication.kubernetes.io/{claim}-uid"] = [reference["uid"]]
        return UserInfo(
            f"system:serviceaccount:{namespace}:{name}",
            ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"),
            account.get("uid", ""),
            extra,
        )

    async def _lives(self, resource: Resource, namespace: str, reference: Object) -> bool:
        obj = await self._get(resource, namespace, reference.get("name", ""))
        if obj is None or uid_of(obj) != reference.get("uid"):
            return False
        deleted = obj["metadata"].get("deletionTimestamp")
        return deleted is None or now(self._clock) <= later(parse_rfc3339(deleted), BOUND_LEEWAY)
