"""What Helm makes of a chart, by the user's own `helm`. Nothing is fetched for it, and no cluster is asked."""

# check: starts processes because it runs helm template

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from lastcall.errors import UserError, WorldError
from lastcall.manifests.kustomize import NO_NETWORK, as_argument
from lastcall.world.dataclass import dataclass

HELM_SECONDS = 60.0
"""How long a chart may take."""
RELEASE = "release-name"
"""The release that `helm template` takes where none is named."""
LONGEST_ERROR = 4000
"""Characters of what helm says, from their end."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart's directory or package, and with what it is rendered. `command` is the lastcall command that reads it."""

    path: str
    values: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    release: str = RELEASE
    namespace: str = "default"
    command: str = "lastcall …"

    @property
    def name(self) -> str:
        """Return what messages say instead of a file name."""
        return f"<helm template {self.path}>"


def rendered(chart: Chart) -> str:
    """Return what `helm template` makes of a chart. Raises UserError, WorldError."""
    for each in chart.values:
        if not Path(each).is_file():
            raise UserError(f"{chart.path}: -f {each}: there is no such file: values are read from files")
    helm = shutil.which("helm")
    if helm is None:
        shown = shlex.join(["helm", *_arguments(chart)])
        raise WorldError(
            f"{chart.path}: it is a chart, and helm is not on your PATH: install it, or render the chart where it is: "
            f"{shown} | {chart.command} -"
        )
    try:
        done = subprocess.run(  # noqa: S603 (the user's own program, on the chart that was asked for)
            [helm, *_arguments(chart)],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=HELM_SECONDS,
            env={**os.environ, **NO_NETWORK},
        )
    except subprocess.TimeoutExpired:
        raise WorldError(f"{chart.path}: helm did not end within {HELM_SECONDS:g} s") from None
    except UnicodeDecodeError:
        raise UserError(f"{chart.path}: the output of helm is not UTF-8") from None
    except OSError as error:
        raise WorldError(f"{chart.path}: {helm} cannot be started: {error.strerror}") from None
    if done.returncode != 0:
        said = done.stderr.strip()[-LONGEST_ERROR:] or f"helm ended with {done.returncode}"
        raise UserError(f"{chart.path}: {said}")
    if not done.stdout.strip():
        raise UserError(f"{chart.path}: helm template printed nothing: its values turn everything off")
    return done.stdout


def _arguments(chart: Chart) -> list[str]:
    given = [word for each in chart.values for word in ("-f", each)]
    given += [word for each in chart.sets for word in ("--set", each)]
    path, namespace = as_argument(chart.path), chart.namespace
    return ["template", chart.release, path, "--namespace", namespace, "--include-crds", *given]
