"""What a run is asked for, whatever asked: the command line, a test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lastcall.ui import AskedPage


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`grace` None is the Pod's own. `after` and `timeout` are seconds, `state_size` is as mount(8) takes it.

    `versions`, when there are any, are compared; `kubernetes_version` is the one that is run now.
    `output` is one of `lastcall.cli.output.FORMATS`; it goes to `output_file`, to stdout when that is None.
    `summary` is a file to which Markdown is appended, "" for none.
    """

    kubernetes_version: str = "1.36"
    versions: tuple[str, ...] = ()
    output: str = "text"
    explain: bool = False
    grace: int | None = None
    after: float = 1.0
    timeout: float = 60.0
    keep: bool = False
    keep_on_failure: bool = False
    state_size: str = "50%"
    output_file: Path | None = None
    summary: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    max_pods: int = 110
    seccomp_default: bool = True
    cni_conf_dir: str = ""
    cni_bin_dir: str = ""
    container_runtime: str = ""
    page: "AskedPage | None" = None
    """The live page, where it is asked for."""
