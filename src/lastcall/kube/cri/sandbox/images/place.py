"""Where the images of a user are, and beside them what else lastcall keeps on disk."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":  # `import lastcall` works there too
    import pwd


def data_home(environ: Mapping[str, str] | None = None) -> Path:
    """Return `$XDG_DATA_HOME/lastcall`, by default below ~/.local/share of the directory that `own_home` returns."""
    environment = os.environ if environ is None else environ
    data = environment.get("XDG_DATA_HOME", "")
    if not data.startswith("/"):  # the XDG specification: a relative path is to be ignored
        data = os.path.join(own_home(environment) or "/", ".local/share")
    return Path(data) / "lastcall"


def own_home(environ: Mapping[str, str]) -> str:
    """Return the home directory of this user, "" if none is known.

    Under sudo HOME may be another user's: root then takes its own, and leaves nothing that the other cannot remove.
    """
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        with suppress(OSError):
            if os.geteuid() != 0 or os.stat(home).st_uid == 0:
                return home
    with suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_dir
    return ""


def default_root(environ: Mapping[str, str] | None = None) -> Path:
    """Return `$XDG_DATA_HOME/lastcall/images`, by default below ~/.local/share."""
    return data_home(environ) / "images"
