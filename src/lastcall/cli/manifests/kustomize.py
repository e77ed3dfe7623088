"""What kustomize makes of a directory, by the user's own kubectl or kustomize."""

# check: starts processes because it runs kubectl kustomize

import shutil
import subprocess

from lastcall.cli.errors import UserError, WorldError

KUSTOMIZE_SECONDS = 120.0
"""How long a kustomization may take: it may fetch what it is made of."""


def told_name(directory: str) -> str:
    """What takes the place of a file name in messages."""
    return f"<kustomize {directory}>"


def kustomized(directory: str) -> str:
    """What `kubectl kustomize` makes of a directory, or `kustomize build`. Raises UserError, WorldError."""
    kubectl, kustomize = shutil.which("kubectl"), shutil.which("kustomize")
    if kubectl is None and kustomize is None:
        raise WorldError(
            f"-k {directory}: neither kubectl nor kustomize is on your PATH: install one, or pipe what another "
            "machine's `kubectl kustomize` prints into `lastcall … -`"
        )
    command = [kubectl, "kustomize", directory] if kubectl is not None else [str(kustomize), "build", directory]
    try:
        done = subprocess.run(  # noqa: S603 (the user's own program, on the directory that was asked for)
            [str(word) for word in command], capture_output=True, text=True, check=False, timeout=KUSTOMIZE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise WorldError(f"-k {directory}: {command[0]} did not end within {KUSTOMIZE_SECONDS:g} s") from None
    except UnicodeDecodeError:
        raise UserError(f"-k {directory}: its output is not a text in UTF-8") from None
    if done.returncode != 0:
        raise UserError(f"-k {directory}: {done.stderr.strip() or f'{command[0]} ended with {done.returncode}'}")
    return done.stdout
