"""The command line, the documents that commands print, and the version."""

import ast
import json
import re

from checks.report import Report
from checks.source import SOURCES, Project

COMMANDS = "lastcall.cli"
SCHEMAS = "docs/*.schema.json"
OF_FILES = "lastcall/config/"
"""The schema of what users write, not of what commands print."""
VERSION = "__version__"
VERSION_FILE = f"{SOURCES}/_version.py"
DOCUMENT = re.compile(r'"(lastcall/[a-z-]+/v\d+)"')


def options(project: Project, report: Report) -> None:
    """Check that an option of several commands is written once."""
    seen: dict[str, str] = {}
    for source in project.below(COMMANDS):
        for node in source.nodes(ast.Call):
            if ast.unparse(node.func) != "click.option":
                continue
            more = [f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords if each.arg != "help"]
            if len(more) < 2:
                continue
            report.looked_at += 1
            option = ", ".join([*map(ast.unparse, node.args), *sorted(more)])
            if option in seen:
                text = f"the option {ast.unparse(node.args[0])} is also in {seen[option]}; write it once and share it"
                report.wrong(source, node.lineno, text)
            seen.setdefault(option, f"{source.path}:{node.lineno}")


def consoles(project: Project, report: Report) -> None:
    """Check that commands print by a console that ends the command when its pipe is closed."""
    for source in project.below(COMMANDS):
        report.looked_at += 1
        for node in source.nodes(ast.Call) if "Console(" in source.text else ():
            called = ast.unparse(node.func).rpartition(".")[2]
            if called in ("Console", "SafeConsole") and not any(each.arg == "file" for each in node.keywords):
                report.wrong(source, node.lineno, "this console fails when its pipe is closed; use stdout_console()")


def schemas(project: Project, report: Report) -> None:
    """Check that every document that the code names has a published schema, and every schema a document."""
    published = {
        json.loads(path.read_text("utf-8"))["$id"]: path.relative_to(project.root).as_posix()
        for path in project.root.glob(SCHEMAS)
    }
    named: set[str] = set()
    for source in project.sources:
        for number, line in enumerate(source.lines, 1) if '"lastcall/' in source.text else ():
            for name in DOCUMENT.findall(line):
                report.looked_at += 1
                named.add(name)
                if name not in published:
                    report.wrong(source, number, f"the document {name} has no schema; add one as {SCHEMAS}")
    for name, path in sorted(published.items()):
        if name not in named and not name.startswith(OF_FILES):
            report.wrong(path, 1, f"no code names the document {name}; remove its schema")


def version(project: Project, report: Report) -> None:
    """Check that the version is in one place, from which pyproject.toml reads it."""
    for source in project.sources:
        for node in source.nodes(ast.Assign) if VERSION in source.text else ():
            if any(isinstance(each, ast.Name) and each.id == VERSION for each in node.targets):
                report.looked_at += 1
                if source.path != VERSION_FILE:
                    report.wrong(source, node.lineno, f"{VERSION} is set here, too; read it from {VERSION_FILE}")
