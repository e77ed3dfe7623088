"""What a container is given to read: its command, its variables, and the files of ConfigMaps that its command names."""

# check: pure

import re
from collections.abc import Iterator

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
    return {int(port) for text in texts_of(workload, container) for port in _OWN_PORT.findall(text)}


def ports_of(container: Container) -> set[int]:
    """Return the ports on which it listens, as far as it declares them, or a flag says them (`--port=5432`)."""
    declared = {int(each["containerPort"]) for each in container.ports if each.get("containerPort")}
    return declared | {int(port) for port in re.findall(r"(?:\A|\s)--port[= ](\d+)\b", " ".join(command_of(container)))}
