"""What kustomize makes of a directory, by the user's own kubectl or kustomize. Nothing is fetched for it."""

# check: starts processes because it runs kubectl kustomize

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lastcall.cli.errors import UserError, WorldError
from lastcall.cli.manifests.kustomize_remote import is_builtin_plugin, is_remote, leads_on, remote_sources
from lastcall.cli.manifests.yaml_documents import MAX_CHARACTERS, YAMLProblem, read_documents

KUSTOMIZE_SECONDS = 120.0
"""How long a kustomization may take."""
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Files of a directory that say how to make manifests; kind and apiVersion may be left out of them."""
_NO_NETWORK = {
    **dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:1"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), ""),
    "GIT_ALLOW_PROTOCOL": "none",
}
"""A second wall behind `refuse_remote`: a proxy that is not there, and no protocol of Git."""


def told_name(directory: str) -> str:
    """What takes the place of a file name in messages."""
    return f"<kustomize {directory}>"


def kustomized(directory: str) -> str:
    """Return what `kubectl kustomize` makes of a directory, or `kustomize build`. Raises UserError, WorldError."""
    kubectl, kustomize = shutil.which("kubectl"), shutil.which("kustomize")
    if kubectl is None and kustomize is None:
        raise WorldError(
            f"-k {directory}: neither kubectl nor kustomize is on your PATH: install one, or pipe what another "
            "machine's `kubectl kustomize` prints into `lastcall … -`"
        )
    refuse_remote(directory)
    command = [kubectl, "kustomize", directory] if kubectl is not None else [str(kustomize), "build", directory]
    try:
        done = subprocess.run(  # noqa: S603 (the user's own program, on the directory that was asked for)
            [str(word) for word in command],
            capture_output=True,
            text=True,
            check=False,
            timeout=KUSTOMIZE_SECONDS,
            env={**os.environ, **_NO_NETWORK},
        )
    except subprocess.TimeoutExpired:
        raise WorldError(f"-k {directory}: {command[0]} did not end within {KUSTOMIZE_SECONDS:g} s") from None
    except UnicodeDecodeError:
        raise UserError(f"-k {directory}: its output is not a text in UTF-8") from None
    if done.returncode != 0:
        raise UserError(f"-k {directory}: {done.stderr.strip() or f'{command[0]} ended with {done.returncode}'}")
    return done.stdout


def refuse_remote(directory: str) -> None:
    """Raise UserError if the kustomization, or one that it names, is made of something on another machine.

    What cannot be read is kustomize's to refuse: it reads the same files.
    """
    todo, seen = [Path(directory)], set[Path]()
    while todo:
        path = todo.pop()
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        names = [path / name for name in KUSTOMIZATIONS] if path.is_dir() else [path]
        for file in names:
            for document in _documents(file):
                if path.is_dir():
                    texts = list(leads_on(document))
                    todo += [path / text for text in texts if "\n" not in text and not is_remote(text)]
                    inline = [each for text in texts if "\n" in text for each in _parsed(text)]
                else:
                    inline, document = [document], None
                looked_at = [document, *filter(is_builtin_plugin, inline)]
                for field, value in (each for one in looked_at for each in remote_sources(one)):
                    raise UserError(
                        f"{file}: {field}: {value} is on another machine: lastcall fetches nothing. Make a copy "
                        f"of it, or run `kubectl kustomize {directory} | lastcall … -`"
                    )


def _documents(file: Path) -> Iterator[Any]:
    if file.is_file():
        with suppress(OSError, UnicodeDecodeError), file.open(encoding="utf-8-sig") as opened:
            yield from _parsed(opened.read(MAX_CHARACTERS + 1))


def _parsed(text: str) -> Iterator[Any]:
    with suppress(YAMLProblem):
        for document in read_documents(text):
            yield document.value
