"""Which requests the page's server answers. Pure.

The server listens on the loopback, where every user of the machine and every page in a browser can reach it. So a
browser brings a token once and gets a cookie for it, the Host has to be the server's own (a name that an attacker lets
point to the loopback is refused), and whatever writes has to come from the page itself (its Origin). The token is
in the fragment of the link, which browsers send to nobody.
"""

# check: pure

import hmac
import secrets
from collections.abc import Callable
from dataclasses import field

from lastcall.world.dataclass import dataclass

READS = ("GET", "HEAD")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'"
)
"""The Content-Security-Policy of every answer: nothing is loaded from elsewhere, and no text becomes a script."""
TOKEN_SECONDS = 60.0
"""A token is good for so long."""
ENTER = "/api/enter"
"""What a browser may ask for that has not been let in: the token is brought there."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer."""

_OWN_SITES = ("", "same-origin", "none")
"""What a browser says in Sec-Fetch-Site of a request that no other page made; "" from those that do not say it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked at of a request. A header that is not there is ""."""

    method: str
    host: str
    origin: str = ""
    site: str = ""
    cookie: str = ""
    socket: bool = False
    """Whether it asks for a WebSocket."""


@dataclass(slots=True)
class Entrance:
    """Of the server at `port`. `token` is good for one browser and for a minute by `now`, a clock in seconds.

    When it is brought, in time or too late, the next one takes its place.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """The cookie's value."""
    on_spent: Callable[[], None] = lambda: None
    """Called after `token` was brought and has been replaced."""
    now: Callable[[], float] = lambda: 0.0
    view: str = ""
    """Return where the link leads to in the page: what follows the token."""
    made_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.made_at = self.now()

    @property
    def cookie_name(self) -> str:
        """Return the cookie's name, with the port: browsers do not tell apart the cookies of two ports."""
        return f"lastcall-{self.port}"

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def link(self) -> str:
        """Return the link with which a browser is opened."""
        return f"{self.origin}/#token={self.token}{self.view}"

    def spend(self, token: str) -> bool:
        """Return whether `token` is the one that is good. It is not any more."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        in_time = self.now() - self.made_at <= TOKEN_SECONDS
        self.token, self.made_at = secrets.token_urlsafe(32), self.now()
        self.on_spent()
        return in_time

    def refusal(self, asked: Asked) -> str:
        """Return why the request is not meant for this server, or not made by its page; "" for one that is."""
        if asked.host != f"127.0.0.1:{self.port}":
            return f"this server is 127.0.0.1:{self.port}, and nothing else"
        if asked.origin not in ("", self.origin):
            return f"requests from {asked.origin} are refused"
        if (asked.method not in READS or asked.socket) and asked.origin != self.origin:
            return "only the page itself may ask for that"
        return ""

    def knows(self, asked: Asked) -> bool:
        """Return whether the browser has been let in, and no other page makes the request."""
        return asked.site in _OWN_SITES and hmac.compare_digest(asked.cookie.encode(), self.session.encode())
