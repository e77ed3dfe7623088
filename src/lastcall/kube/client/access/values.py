"""Which texts of a kubeconfig can be sent or connected to. Pure.

Sources: client-go rest/url_utils.go:DefaultServerURL; golang.org/x/net/http/httpguts:ValidHeaderFieldValue.
"""

# check: pure

import re
from urllib.parse import SplitResult, urlsplit

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_BLANK = re.compile(r"[\x00-\x20\x7f]")
_USER = re.compile(r"//[^/?#]*@")
_HOST = re.compile(r"[0-9A-Za-z._:-]*")


def split_url(text: str) -> SplitResult:
    """Return the parts of a URL whose port is a port. Raises ValueError with words."""
    if _BLANK.search(text):
        raise ValueError("there is a blank or a control character in it")
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise ValueError(str(error)) from None
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError("its port is not a number from 1 to 65535")
    return parts


def server_problem(text: str) -> str:
    """Return what is wrong with the URL of an API server, "" for a good one."""
    try:
        parts = split_url(text)
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https"):
        return "it begins with neither https:// nor http://"
    if not parts.hostname:
        return "there is no host in it"
    if "@" in parts.netloc:
        return "there is user information in it (write a token or a certificate into the user)"
    if parts.query or parts.fragment:
        return "there is a query or a fragment in it"
    return ""


def without_user(url: str) -> str:
    """Return a URL that can be shown: a password in it is not."""
    return _USER.sub("//***@", url)


def header_problem(text: str) -> str:
    """Return what is wrong with a text that is sent as a header, "" for a good one."""
    return "has a line break or another control character in it" if _CONTROL.search(text) else ""


def host_problem(text: str) -> str:
    """Return what is wrong with the name that a certificate has to have, "" for a good one."""
    return "" if _HOST.fullmatch(text) and len(text) <= 253 else "is not a host name or an address"
