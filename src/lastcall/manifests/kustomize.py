"""What kustomize makes of a directory, by the user's own kubectl or kustomize. Nothing is fetched for it."""

# check: starts processes because it runs kubectl kustomize

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lastcall.errors import UserError, WorldError
from lastcall.manifests.kustomize_remote import KUSTOMIZATIONS, is_builtin_plugin, is_remote, leads_on, remote_sources
from lastcall.manifests.yaml_documents import MAX_CHARACTERS, YAMLProblem, read_documents
from lastcall.world.os_errors import describe_os_error

KUSTOMIZE_SECONDS = 120.0
"""How long a kustomization may take."""
NO_NETWORK = {
    **dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:1"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), ""),
    "GIT_ALLOW_PROTOCOL": "none",
}
"""A second wall behind `refuse_remote`: a proxy that is not there, and no protocol of Git."""


def as_argument(path: str) -> str:
    """Return a path as an argument that no program takes for an option."""
    return os.path.join(os.curdir, path) if path.startswith("-") else path


def display_name(directory: str) -> str:
    """Return what takes the place of a file name in messages."""
    return f"<kustomize {directory}>"


def kustomized(directory: str) -> str:
    """Return what `kubectl kustomize` makes of a directory, or `kustomize build`. Raises UserError, WorldError."""
    kubectl, kustomize = shutil.which("kubectl"), shutil.which("kustomize")
    if kubectl is None and kustomize is None:
        raise WorldError(
            f"-k {directory}: neither kubectl nor kustomize is on your PATH: install one, or run `kubectl kustomize` "
            f"on another machine and pipe its output into `lastcall … -`"
        )
    refuse_remote(directory)
    path = as_argument(directory)
    command = [kubectl, "kustomize", path] if kubectl is not None else [str(kustomize), "build", path]
    try:
        done = subprocess.run(  # noqa: S603 (the user's own program, on the directory that was asked for)
            [str(word) for word in command],
            capture_output=True,
            text=True,
            check=False,
            timeout=KUSTOMIZE_SECONDS,
            env={**os.environ, **NO_NETWORK},
        )
    except subprocess.TimeoutExpired:
        raise WorldError(f"-k {directory}: {command[0]} did not end within {KUSTOMIZE_SECONDS:g} s") from None
    except UnicodeDecodeError:
        raise UserError(f"-k {directory}: its output is not UTF-8 text") from None
    if done.returncode != 0:
        raise UserError(f"-k {directory}: {done.stderr.strip() or f'{command[0]} ended with {done.returncode}'}")
    return done.stdout


def refuse_remote(directory: str) -> None:
    """Raise UserError if the kustomization, or one that it names, has a part on another machine.

    Raise it for what cannot be looked at, too. A path that is not there is left to kustomize, which says so.
    """
    todo, seen = [Path(directory)], set[str]()
    while todo:
        path = todo.pop()
        real = os.path.realpath(path)
        if real in seen:
            continue
        seen.add(real)
        is_directory = os.path.isdir(path)  # False for a name that no file can have, where Path's raises
        for file in [path / name for name in KUSTOMIZATIONS] if is_directory else [path]:
            for document in _documents(file):
                if is_directory:
                    texts = list(leads_on(document))
                    todo += [path / text for text in texts if not re.search(r"[\n\0]", text) and not is_remote(text)]
                    inline = [each for text in texts if "\n" in text for each in _parsed(text, file)]
                else:
                    inline, document = [document], None
                looked_at = [document, *filter(is_builtin_plugin, inline)]
                for field, value in (each for one in looked_at for each in remote_sources(one)):
                    raise UserError(
                        f"{file}: {field}: {value} is remote, and lastcall fetches nothing. Make a local copy, or run "
                        f"`kubectl kustomize {directory} | lastcall … -`"
                    )


def _documents(file: Path) -> Iterator[Any]:
    """Yield the documents of a file, none of what is not a file. Raises UserError."""
    if not os.path.isfile(file):
        return
    try:
        with file.open(encoding="utf-8-sig") as opened:
            text = opened.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise UserError(describe_os_error(error)) from None
    yield from _parsed(text, file)


def _parsed(text: str, file: Path) -> Iterator[Any]:
    try:
        for document in read_documents(text):
            yield document.value
    except YAMLProblem as problem:
        raise UserError(f"{file}:{problem.line}: {problem}") from None
