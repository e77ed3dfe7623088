"""What a container is given to read: its command, its variables, and the files of ConfigMaps that its command names."""

# check: pure

import re
from collections.abc import Iterator

from lastcall.lint import commands
from lastcall.lint.application import Container, Workload
from lastcall.lint.mounted import mounted_file

_OWN_PORT = re.compile(r"(?:127\.0\.0\.1|\blocalhost|\[::1\])['\"]?(?::|, ?)(\d+)\b")
"""A port of the Pod itself: `127.0.0.1:8000`, `("localhost", 8000)`."""


def command_of(container: Container) -> list[str]:
    """Return the words of its command and its args."""
    return [str(each) for each in (*(container.spec.get("command") or ()), *(container.spec.get("args") or ()))]


def texts_of(workload: Workload, container: Container) -> Iterator[str]:
    """Yield the words of its command, the values of its variables, and the files that its command names."""
    for word in command_of(container):
        yield word
        if (file := mounted_file(workload, container, word)) is not None:
            yield file.text
    for each in container.spec.get("env") or ():
        yield str(each.get("value") or "")


def own_ports_in(workload: Workload, container: Container) -> set[int]:
    """Return the ports of its own Pod that its texts name, as those that it connects to."""
    return {port for text in texts_of(workload, container) for port in own_ports_of(text)}


def own_ports_of(text: str) -> set[int]:
    """Return the ports of its own Pod that a text names."""
    return set(map(int, _OWN_PORT.findall(text)))


def ports_of(container: Container) -> set[int]:
    """Return the ports on which it listens, as far as it declares them, or a flag says them (`--port=5432`)."""
    declared = {int(each["containerPort"]) for each in container.ports if each.get("containerPort")}
    return declared | {int(port) for port in re.findall(r"(?:\A|\s)--port[= ](\d+)\b", " ".join(command_of(container)))}


_ASKED_BY_PROBES = ("httpGet", "tcpSocket", "grpc")


def listens_on(workload: Workload, container: Container) -> set[int]:
    """Return `ports_of`, and those that its own probes ask, unless another container declares them."""
    asked = set[int]()
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = container.spec.get(kind) or {}
        ports = (str((probe.get(each) or {}).get("port") or "") for each in _ASKED_BY_PROBES)
        words = " ".join(map(str, (probe.get("exec") or {}).get("command") or ()))
        asked |= {int(port) for port in (*ports, *_OWN_PORT.findall(words)) if port.isdigit()}
    others = (ports_of(each) for each in workload.containers if each is not container)
    return ports_of(container) | asked.difference(*others)


def shell_text(workload: Workload, container: Container) -> str | None:
    """Return the script that PID 1 of a container runs as a shell; None for no shell, and where the image decides."""
    argv = command_of(container)
    if not container.spec.get("command"):
        return None
    file = mounted_file(workload, container, commands.script_file(argv))
    if file is None:
        return commands.shell_script(argv)
    return file.text if commands.program(argv) in commands.SHELLS or commands.shell_of(file.text) else None


def python_text(workload: Workload, container: Container) -> str | None:
    """Return the Python source that a container runs, from its command or a ConfigMap; None for none."""
    argv = command_of(container)
    if not container.spec.get("command") or not commands.program(argv).startswith("python"):
        return None
    for index, word in enumerate(argv[1:], 1):
        if re.fullmatch(r"-[a-zA-Z]*c", word):
            return argv[index + 1] if index + 1 < len(argv) else None
        if not word.startswith("-"):
            file = mounted_file(workload, container, word)
            return file.text if file is not None else None
    return None
