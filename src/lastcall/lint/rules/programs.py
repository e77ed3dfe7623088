"""Programs that commands, hooks and probes name: whether there can be such a one, and whether it may be run."""

from collections.abc import Iterator

from lastcall.lint import commands, images
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.mounted import mounted_file
from lastcall.lint.subject import Finding, Op, found
from lastcall.manifests import value_at


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        for container in workload.all_containers:
            yield from _one_word(workload, container)
            yield from _not_executable(workload, container)
            yield from _scripts(workload, container)
            yield from _after_exec(workload, container)


COMMANDS: tuple[tuple[str, ...], ...] = (
    (), ("lifecycle", "postStart", "exec"), ("lifecycle", "preStop", "exec"), ("startupProbe", "exec"),
    ("livenessProbe", "exec"), ("readinessProbe", "exec"),
)  # fmt: skip
"""Where a container has a command."""


def _one_word(workload: Workload, container: Container) -> Iterator[Finding]:
    for path in COMMANDS:
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
    for path in COMMANDS:
        argv = (value_at(container.spec, path) or {}).get("command") or []
        script = commands.shell_script(argv)
        lines = [argv] if script is None else commands.commands_of(script)
        for words in lines:
            words = words[1:] if words and words[0] == "exec" else words
            file = mounted_file(workload, container, words[0]) if words else None
            if file is None or file.mode & 0o111:
                continue
            where = (*container.path, *path, "command")
            text = (
                f"{container.name} runs {words[0]}, a file of a ConfigMap with mode {file.mode:04o}: it is not "
                "executable (permission denied)."
            )
            patch = [Op("replace" if workload.subject.has(file.path) else "add", file.path, file.mode | 0o111)]
            fix = f"mode {file.mode | 0o111:04o} ({file.mode | 0o111}), or run it by its interpreter: sh {words[0]}."
            yield found("fileNotExecutable", workload.subject, where, text, fix=fix, patch=patch, automatic=True)
            return


def _scripts(workload: Workload, container: Container) -> Iterator[Finding]:
    """A script of a ConfigMap that the kernel cannot run, or whose lines a shell does not understand."""
    for path in COMMANDS:
        argv = (value_at(container.spec, path) or {}).get("command") or []
        script = commands.shell_script(argv)
        lines = [argv] if script is None else commands.commands_of(script)
        for words in lines:
            words = words[1:] if words and words[0] == "exec" else words
            name = commands.script_file(words)
            file = mounted_file(workload, container, name) if name else None
            if file is None:
                continue
            where, by_name = (*container.path, *path, "command"), name == words[0]
            head = f"{container.name} runs {name} of {file.source}, "
            first = file.text.partition("\n")[0]
            if by_name and first.startswith("#!") and first.endswith("\r"):
                text = f"{head}whose first line ends with a carriage return: its interpreter is not found."
                yield found("scriptLineEnds", workload.subject, where, text)
            elif by_name and script is None and not first.startswith("#!"):
                yield found("scriptNoInterpreter", workload.subject, where, f"{head}which does not begin with #!.")
            elif "\r\n" in file.text and (not by_name or commands.shell_of(file.text)):
                text = f"{head}whose lines end with a carriage return: a shell takes it for a part of the last word."
                yield found(
                    "scriptLineEnds",
                    workload.subject,
                    where,
                    text,
                    severity="warning",
                    certainty="dependsOnApplication",
                )


def _after_exec(workload: Workload, container: Container) -> Iterator[Finding]:
    """Commands that come after the one that takes the shell's place."""
    for path in COMMANDS:
        source, argv = (value_at(container.spec, path) if path else container.spec) or {}, []
        argv = [*(source.get("command") or []), *((source.get("args") or []) if not path else [])]
        script, whose = commands.shell_script(argv), "its shell"
        if script is None and (file := mounted_file(workload, container, commands.script_file(argv)) if argv else None):
            is_shell = commands.program(argv) in commands.SHELLS or commands.shell_of(file.text)
            script, whose = (file.text if is_shell else None), f"the shell of {commands.script_file(argv)}"
        if script is None or (never := commands.never_run(script)) is None:
            continue
        field = "command" if source.get("command") else "args"
        program, lost = never[0][1], " ".join(never[1][:3])
        text = f"{container.name}: {whose} becomes {program} by exec, so it never runs {lost!r}, which comes after it."
        yield found("execEndsScript", workload.subject, (*container.path, *path, field), text)


def missing_program(container: Container, argv: list[str]) -> str:
    """Return the first program of a command line that images of such a name come without; "" for none."""
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
