"""`python -m checks` runs every rule and prints each violation as `path:line: rule: text`.

It exits with 1 if there is any violation.
"""

import gc
import sys
import time
from pathlib import Path

from checks import (
    apiserver,
    circles,
    commands,
    data,
    dead_names,
    docstrings,
    documents,
    doors,
    evidence,
    facts,
    imports,
    late,
    marker_rule,
    mirror,
    packages,
    printing,
    pure,
    sentences,
    sizes,
    sleeps,
    workers,
)
from checks.report import Rule
from checks.source import Project

ROOT = Path(__file__).resolve().parents[2]
RULES = (
    Rule("markers", marker_rule.markers, "markers", 200),
    Rule("doors", doors.doors, "files", 500),
    Rule("own-random", doors.own_random, "files", 500),
    Rule("processes", doors.processes, "files", 500),
    Rule("shells", doors.shells, "files", 500),
    Rule("libraries", doors.libraries, "imports", 4),
    Rule("observes", evidence.observes, "calls", 30),
    Rule("predicts", evidence.predicts, "calls"),
    Rule("package-files", imports.package_files, "packages", 50),
    Rule("faces", imports.faces, "imports", 200),
    Rule("names-of-wings", imports.names_of_wings, "names"),
    Rule("standard-library", imports.standard_library, "files", 20),
    Rule("types", imports.types, "imports", 100),
    Rule("aiohttp", imports.aiohttp, "files", 10),
    Rule("aiohttp-loading", imports.aiohttp_loading, "files", 10),
    Rule("package-docstrings", packages.docstrings, "packages", 50),
    Rule("stutters", packages.stutters, "files", 500),
    Rule("circles", packages.circles, "imports", 2000),
    Rule("import-circles", circles.import_circles, "imports", 4000),
    Rule("mirror", mirror.mirror, "folders", 50),
    Rule("pure", pure.pure, "files", 100),
    Rule("plain-objects", pure.plain_objects, "files", 20),
    Rule("late-imports", late.late_imports, "places", 20),
    Rule("dead-names", dead_names.dead_names, "files", 900),
    Rule("defaults", data.defaults, "calls", 10),
    Rule("worker-state", workers.worker_state, "places"),
    Rule("admission-reads", apiserver.admission_reads, "files", 5),
    Rule("asks-for-kinds", apiserver.asks_for_kinds, "comparisons", 500),
    Rule("facts", facts.facts, "places"),
    Rule("findings", sentences.findings, "calls", 45),
    Rule("japanese", sentences.japanese, "texts", 40),
    Rule("options", commands.options, "options", 40),
    Rule("consoles", commands.consoles, "files", 50),
    Rule("printing", printing.printing, "files", 500),
    Rule("schemas", commands.schemas, "places", 5),
    Rule("version", commands.version, "places"),
    Rule("sleeps", sleeps.sleeps, "sleeps", 50),
    Rule("long-functions", sizes.long_functions, "functions", 5000),
    Rule("many-attributes", sizes.many_attributes, "classes", 500),
    Rule("document-paths", documents.paths, "paths", 200),
    Rule("document-links", documents.links, "links", 20),
    Rule("verbs", docstrings.verbs, "docstrings", 5000),
)
"""Every rule. The last number is the least that it must have looked at."""


def main() -> int:
    """Run the rules and return the exit status."""
    project = Project.read(ROOT)
    failed = False
    for rule in RULES:
        report = rule.run(project)
        for path, line, text in sorted(report.violations):
            sys.stdout.write(f"{path}:{line}: {rule.name}: {text}\n")
        result = f"{len(report.violations)} violations" if report.violations else "ok"
        sys.stdout.write(f"{rule.name}: {report.looked_at} {rule.unit}, {result}\n")
        failed |= bool(report.violations)
    sys.stdout.write(f"checks: {len(RULES)} rules, {time.process_time():.1f} CPU seconds\n")
    return 1 if failed else 0


if __name__ == "__main__":
    gc.disable()  # the trees stay until the end
    sys.exit(main())
