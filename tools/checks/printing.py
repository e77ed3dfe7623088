"""Text reaches a terminal through `cli/terminal.py` and `endings/render/console.py`, which quote it."""

import ast

from checks.report import Report
from checks.source import Project, Source

WORD = "prints"
CALLS = {
    "click.echo": "say() or show()",
    "click.secho": "say()",
    "click.prompt": "ask()",
    "click.confirm": "ask()",
    "click.progressbar": "SafeConsole",
    "click.echo_via_pager": "show()",
    "rich.print": "SafeConsole",
    "rich.get_console": "SafeConsole",
    "rich.console.Console": "SafeConsole",
    "rich.text.Text": "Text of lastcall.endings.render.console",
    "traceback.print_exc": "say_all(traceback.format_exc())",
    "traceback.print_exception": "say_all(traceback.format_exception(…))",
    "logging.StreamHandler": "say()",
}
"""What prints text as it is, and what to use instead."""
STREAMS = ("sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__")
HARMLESS = ("isatty", "flush", "encoding", "fileno")
"""What a file may use of a stream."""
ASKS = "takes_escapes"
"""The function that may be given a stream."""


def printing(project: Project, report: Report) -> None:
    """Check that only marked files write to stdout, stderr or a terminal."""
    found: dict[str, int] = {}
    said: dict[str, str] = {}
    for source in project.sources:
        report.looked_at += 1
        for line, what, instead in sorted(_places(source)):
            found.setdefault(source.path, line)
            said.setdefault(source.path, f"{what} prints text as it is; use {instead}")
    for source in project.sources:
        marker = source.marker(WORD)
        if source.path in found and not marker:
            text = f"{said[source.path]}, or write `# check: {WORD} because <reason>`"
            report.wrong(source, found[source.path], text)
        elif marker and source.path not in found:
            report.wrong(source, marker.line, f"the marker '{WORD}' has no effect; remove it")


def _places(source: Source) -> set[tuple[int, str, str]]:
    typing = {each.line for each in source.imports if each.typing}
    found = {(line, name, CALLS[name]) for line, name in source.used if name in CALLS and line not in typing}
    found |= {(each.line, each.full, "say() or show()") for each in source.imports if each.full in STREAMS}
    harmless = {id(each.value) for each in source.nodes(ast.Attribute) if each.attr in HARMLESS}
    for call in source.nodes(ast.Call):
        name = ast.unparse(call.func)
        if name == "print":
            found.add((call.lineno, "print()", "say()"))
        elif name == "os.write" and call.args and ast.unparse(call.args[0]) in ("1", "2"):
            found.add((call.lineno, "os.write()", "say()"))
        elif name.rpartition(".")[2] == ASKS:
            harmless |= {id(each) for each in call.args}
    for stream in source.nodes(ast.Attribute):
        name = source.full_name(stream)
        if name in STREAMS and id(stream) not in harmless:
            found.add((stream.lineno, name, "say() or show()"))
    return found
