"""Who shows a bootstrap token: `system:bootstrap:ID`, in the groups that its Secret says.

Source: plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go.
"""

from lastcall.api.resources import SECRETS
from lastcall.api.text import bootstrap_tokens as tokens
from lastcall.apiserver.auth.authentication import UserInfo, VerifyToken
from lastcall.apiserver.auth.tokens import GetObject
from lastcall.world.clock import Clock, now


class BootstrapTokenVerifier:
    """Asks the Secrets first; what is not a bootstrap token, and one that is not good, is `other`'s to judge."""

    def __init__(self, clock: Clock, get: GetObject, other: VerifyToken) -> None:
        self._clock, self._get, self._other = clock, get, other

    async def verify(self, token: str) -> UserInfo | None:
        """As `VerifyToken`."""
        found = tokens.parse(token)
        if found is not None:
            secret = await self._get(SECRETS, tokens.NAMESPACE, tokens.SECRET_NAME + found.id)
            groups = tokens.groups_of(found, secret, now(self._clock)) if secret is not None else None
            if groups is not None:
                return UserInfo(tokens.USER + found.id, tuple(groups))
        return await self._other(token)
