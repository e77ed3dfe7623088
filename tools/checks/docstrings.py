"""Public names: the docstring of each function and method begins with a verb (STYLE.md)."""

import ast
import re
from collections.abc import Iterator

from checks.report import Report
from checks.source import SOURCES, Project, Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
PROGRAM = ("lastcall.cli.commands", "cli")
"""Its docstring is the help of the program, and says what lastcall is."""
VERBS = frozenset(
    re.findall(
        r"\w+",
        """
        Accept Account Add Adopt Advise Allow Announce Answer Append Apply Ask Assign Assume Attach Await Be
        Become Begin Bind Block Break Bring Build Call Cancel Change Check Choose Claim Classify Clean Clear
        Clone Close Coerce Collect Commit Compare Compile Compress Compute Configure Connect Continue Convert
        Copy Count Cover Create Cut Decide Declare Decode Delete Deliver Describe Detach Disconnect Disrupt Do
        Double Drain Draw Drop Emit Encode End Escape Estimate Evaluate Evict Examine Execute Exit Expand Expect
        Fail Fetch Fill Filter Find Finish Follow Forbid Forget Fork Format Free Generate Get Give Go Group Hand
        Handle Hash Hide Hold Import Install Issue Join Judge Keep Kill Learn Leave Let Limit Link List Listen
        Load Log Look Make Map Mark Match Measure Merge Mount Move Multiply Name Nominate Note Notice Observe
        Open Pack Parse Pass Pause Perform Plan Play Pool Predict Prepare Print Prune Publish Pull Put Queue
        Quote Raise Rank Read Reap Reconnect Record Register Reject Relay Release Remember Remount Remove Renew
        Reopen Replace Report Require Reserve Reset Resize Resolve Restart Restore Retry Return Rotate Round Run
        Save Say Schedule Select Send Serve Set Share Show Shut Sign Signal Sort Split Start Stay Stop Store
        Sweep Sync Take Tell Test Translate Trim Try Turn Undo Unmap Unmerge Unmount Unpack Update Use Validate
        Wait Warn Watch Work Write Yield
        """,
    )
)


def verbs(project: Project, report: Report) -> None:
    """Check that the docstring of each public function and method begins with a verb."""
    for source in project.modules.values():
        if not source.path.startswith(f"{SOURCES}/"):
            continue
        for function in _functions(source):
            text = ast.get_docstring(function)
            if text is None or (source.module, function.name) == PROGRAM:
                continue
            report.looked_at += 1
            found = re.match(r"\w+", text)
            if found is None or found.group() not in VERBS:
                first = text.split()[0] if text.split() else ""
                why = f"begin the docstring of {function.name} with a verb of tools/checks/docstrings.py, not {first!r}"
                report.wrong(source, function.lineno, why)


def _functions(source: Source) -> Iterator[Function]:
    """Yield the public functions of a module and the public methods of its public classes."""
    for node in source.tree.body:
        if isinstance(node, Function):
            yield from () if node.name.startswith("_") else (node,)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            methods = (each for each in node.body if isinstance(each, Function))
            yield from (each for each in methods if not each.name.startswith("_"))
