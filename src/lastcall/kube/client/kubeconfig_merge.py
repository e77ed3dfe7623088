"""A cluster's entries in the user's own kubeconfig: added, replaced and taken away, as kubectl and kind do it.

Other entries keep what they say; comments are lost, as with `kubectl config`. The file is locked against kubectl by
`<file>.lock`, and replaced as a whole.

Source: client-go tools/clientcmd (loader.go:lockFile; config.go:ModifyConfig), kind pkg/cluster/internal/kubeconfig.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from lastcall.kube.client.kubeconfig import KubeconfigError, kubeconfig_paths
from lastcall.world.blocking import monotonic, sleep, wall

LOCK_SECONDS = 10.0
_AGAIN_SECONDS = 0.05
_STALE_SECONDS = 600.0
_KINDS = ("clusters", "users", "contexts")


def entry_name(cluster: str) -> str:
    """Return what a cluster's context, cluster and user are called in a kubeconfig that has others."""
    return f"lastcall-{cluster}"


def users_kubeconfig(explicit: str = "") -> Path:
    """Return the file that is changed: the explicit one, the first of $KUBECONFIG that exists (else its last), or
    ~/.kube/config. (`loader.go:GetDefaultFilename`)"""
    paths = kubeconfig_paths(explicit)
    return next((path for path in paths if path.exists()), paths[-1])


def merge(path: Path, cluster: str, own: dict[str, Any]) -> None:
    """Put the entries of `own` (one cluster, user and context) into the file, and make its context the current one.

    Raises KubeconfigError.
    """
    name = entry_name(cluster)
    found = {kind: {**own[kind][0], "name": name} for kind in _KINDS}
    found["contexts"]["context"] = {**found["contexts"]["context"], "cluster": name, "user": name}
    with _locked(path):
        document = _without(_read(path), name)
        for kind in _KINDS:
            document[kind].append(found[kind])
        document["current-context"] = name
        _write(path, document)


def unmerge(path: Path, cluster: str) -> bool:
    """Take them away again; whether there were some. Raises KubeconfigError."""
    name = entry_name(cluster)
    if not path.exists():
        return False
    with _locked(path):
        document = _read(path)
        if not any(each.get("name") == name for kind in _KINDS for each in document.get(kind) or ()):
            return False
        document = _without(document, name)
        if document.get("current-context") == name:
            document["current-context"] = ""
        _write(path, document)
        return True


def _without(document: dict[str, Any], name: str) -> dict[str, Any]:
    kept = {kind: [each for each in document.get(kind) or () if each.get("name") != name] for kind in _KINDS}
    return {"apiVersion": "v1", "kind": "Config", **document, **kept}


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path} cannot be read: {error}") from error
    if document is None:
        return {}
    lists = isinstance(document, dict) and [document.get(kind) or [] for kind in _KINDS]
    if not lists or not all(isinstance(each, list) and all(isinstance(e, dict) for e in each) for each in lists):
        raise KubeconfigError(f"{path} is not a kubeconfig: clusters, users and contexts must be lists of objects")
    assert isinstance(document, dict)
    return document


def _write(path: Path, document: dict[str, Any]) -> None:
    """All of it or nothing; a link stays one, and nobody else may read it."""
    target = path.resolve()
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            yaml.safe_dump(document, file, sort_keys=False)
        os.replace(unfinished, target)
    except OSError as error:
        raise KubeconfigError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """kubectl's lock. One that is ten minutes old is of a process that was killed."""
    lock = path.with_name(f"{path.name}.lock")
    until = monotonic() + LOCK_SECONDS
    while True:
        try:
            path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            with suppress(OSError):
                if wall() - lock.stat().st_mtime > _STALE_SECONDS:
                    lock.unlink()
                    continue
            if monotonic() > until:
                raise KubeconfigError(
                    f"{lock} is there for more than {LOCK_SECONDS:g} s: another command changes {path.name}, or was "
                    "killed while it did (then remove the file)"
                ) from None
            sleep(_AGAIN_SECONDS)
        except OSError as error:
            raise KubeconfigError(f"{lock} cannot be made: {error.strerror}") from error
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
