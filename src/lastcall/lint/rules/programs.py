"""Programs that commands, hooks and probes name: whether there can be such a one, and whether it may be run."""

from collections.abc import Iterator

from lastcall.lint import commands, images
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.mounted import MountedFile, mounted_file
from lastcall.lint.subject import Finding, Op, found
from lastcall.manifests import Path, value_at


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        for container in workload.all_containers:
            yield from _one_word(workload, container)
            yield from _not_executable(workload, container)
            yield from _carriage_return(workload, container)


_COMMANDS: tuple[tuple[str, ...], ...] = (
    (), ("lifecycle", "postStart", "exec"), ("lifecycle", "preStop", "exec"), ("startupProbe", "exec"),
    ("livenessProbe", "exec"), ("readinessProbe", "exec"),
)  # fmt: skip


def _one_word(workload: Workload, container: Container) -> Iterator[Finding]:
    for path in _COMMANDS:
        argv = (value_at(container.spec, path) or {}).get("command") or []
        if not argv or " " not in argv[0].strip():
            continue
        where = (*container.path, *path, "command")
        what = "command" if not path else f"{path[-2]} hook" if path[0] == "lifecycle" else path[-2]
        text = f"The {what} of {container.name} looks for a program named {argv[0]!r}: no shell splits it into words."
        words = commands.words_of(argv[0])
        patch = [Op("replace", where, [*words, *argv[1:]])] if words else []
        yield found("commandIsOneWord", workload.subject, where, text, patch=patch, automatic=True)


def _not_executable(workload: Workload, container: Container) -> Iterator[Finding]:
    """A file of a ConfigMap that is run by its name; the kernel refuses it to root, too."""
    for name, file, where in _files(workload, container):
        if file.mode & 0o111:
            continue
        text = (
            f"{container.name} runs {name}, a file of a ConfigMap with mode {file.mode:04o}: it is not executable "
            "(permission denied)."
        )
        patch = [Op("replace" if workload.subject.has(file.path) else "add", file.path, file.mode | 0o111)]
        fix = f"mode {file.mode | 0o111:04o} ({file.mode | 0o111}), or run it by its interpreter: sh {name}."
        yield found("fileNotExecutable", workload.subject, where, text, fix=fix, patch=patch, automatic=True)
        return


def _carriage_return(workload: Workload, container: Container) -> Iterator[Finding]:
    """A script of a ConfigMap that is run by its name, and whose interpreter's name ends with a carriage return."""
    for name, file, _ in _files(workload, container):
        first = file.text.split("\n", 1)[0]
        if not (first.startswith("#!") and first.endswith("\r")):
            continue
        text = (
            f"{container.name} runs {name}, whose first line ends with a carriage return (CRLF): it becomes a part of "
            f"{first[2:].strip()!r}, and there is no such program or option."
        )
        path: Path = ("data", file.key)
        patch = [Op("replace", path, file.text.replace("\r\n", "\n"))]
        yield found("scriptHasCarriageReturn", file.source, path, text, patch=patch, automatic=True)
        return


def _files(workload: Workload, container: Container) -> Iterator[tuple[str, MountedFile, Path]]:
    """Yield the files of ConfigMaps that a container runs by their names, and where that is said."""
    for path in _COMMANDS:
        argv = (value_at(container.spec, path) or {}).get("command") or []
        script = commands.shell_script(argv)
        for words in [argv] if script is None else commands.commands_of(script):
            words = words[1:] if words and words[0] == "exec" else words
            file = mounted_file(workload, container, words[0]) if words else None
            if file is not None:
                yield words[0], file, (*container.path, *path, "command")


def missing_program(container: Container, argv: list[str]) -> str:
    """The first program of a command line that images of such a name come without; "" for none."""
    image = str(container.spec.get("image"))
    script = commands.shell_script(argv)
    lines = [argv, *(commands.commands_of(script) if script is not None else [])]
    path = next((each.get("value") for each in container.spec.get("env") or () if each.get("name") == "PATH"), None)
    elsewhere = path and "$" not in path and not {"/bin", "/usr/bin"} & set(path.split(":"))
    missing = (
        words[0]
        for words in lines
        if images.lacks(image, commands.program(words)) or (elsewhere and words[0] in images.COMMON)
    )
    return next(missing, "")
