"""Where the images of a user are, and beside them what else lastcall keeps on disk."""

import os
from collections.abc import Mapping
from pathlib import Path


def data_home(environ: Mapping[str, str] | None = None) -> Path:
    """Return `$XDG_DATA_HOME/lastcall`, by default below ~/.local/share."""
    environment = os.environ if environ is None else environ
    data = environment.get("XDG_DATA_HOME", "")
    if not data.startswith("/"):  # the XDG specification: a relative path is to be ignored
        data = os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".local/share")
    return Path(data) / "lastcall"


def default_root(environ: Mapping[str, str] | None = None) -> Path:
    """Return `$XDG_DATA_HOME/lastcall/images`, by default below ~/.local/share."""
    return data_home(environ) / "images"
