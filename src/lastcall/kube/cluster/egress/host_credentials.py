"""The user's own registry credentials: `$DOCKER_CONFIG/config.json` (~/.docker) and the helpers it names.

Blocking, on the host. Source: docker/cli config/credentials, docker-credential-helpers protocol.
"""

# check: starts processes because it runs docker's credential helpers

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lastcall.kube.cri.api import AuthConfig
from lastcall.kube.cri.docker_config import DockerConfigError, credentials_for, parse_docker_config

HELPER_SECONDS = 30.0
_MAX_CONFIG = 4 * 1024 * 1024
_IDENTITY_TOKEN_USER = "<token>"  # noqa: S105 (docker's word for "the secret is an identity token")


class HostCredentialsError(Exception):
    """The user's docker config, or a helper it names, does not work; the text says which and why."""


def host_credentials(repository: str, environ: Mapping[str, str] | None = None) -> AuthConfig | None:
    """Read the user's docker config for `registry[:port]/path`; None if it has nothing. Raises HostCredentialsError."""
    environment = os.environ if environ is None else environ
    path = config_path(environment)
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_CONFIG)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostCredentialsError(f"cannot read {path}: {error.strerror}") from error
    try:
        config = parse_docker_config(data)
    except DockerConfigError as error:
        raise HostCredentialsError(f"{path}: {error}") from error
    helper, key = config.helper_for(repository.partition("/")[0])
    found = _ask(helper, key, environment) if helper else None
    return found or next(iter(credentials_for(repository, [config])), None)


def config_path(environ: Mapping[str, str]) -> Path:
    """Return where docker would read its config."""
    directory = environ.get("DOCKER_CONFIG") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".docker")
    return Path(directory) / "config.json"


def _ask(helper: str, key: str, environ: Mapping[str, str]) -> AuthConfig | None:
    """`docker-credential-<helper> get`: the key on its stdin, JSON on its stdout."""
    program = f"docker-credential-{helper}"
    try:
        done = subprocess.run(  # noqa: S603 (a program the user's own config names, without a shell)
            [program, "get"],
            input=key.encode(),
            capture_output=True,
            timeout=HELPER_SECONDS,
            env=dict(environ),
            check=False,
        )
    except FileNotFoundError:
        raise HostCredentialsError(f"the docker config names {program}, which is not on the PATH") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostCredentialsError(f"{program} get: {type(error).__name__}") from None
    if done.returncode:
        said = (done.stdout or done.stderr).decode(errors="replace").strip().partition("\n")[0]
        if "not found" in said:
            return None
        raise HostCredentialsError(f"{program} get {key} failed: {said[:200] or f'exit code {done.returncode}'}")
    try:
        answer = json.loads(done.stdout)
        user, secret = str(answer["Username"]), str(answer["Secret"])
    except (ValueError, KeyError, TypeError):
        raise HostCredentialsError(f"{program} get {key} answered no credentials") from None
    if user == _IDENTITY_TOKEN_USER:
        return AuthConfig(identity_token=secret)
    return AuthConfig(user, secret)
