"""The transitions of the Pod workers as a picture in docs/architecture/deletion.md, made of the table in the code.

`python tests/support/workers_diagram.py` writes it.
"""

from pathlib import Path

from lastcall.kube.node.workers.transitions import EDGES, State

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture" / "deletion.md"
BEGIN, END = "<!-- workers: begin -->\n", "<!-- workers: end -->\n"


def diagram() -> str:
    """A Mermaid state diagram: one arrow for each pair of states, with every cause that leads that way; and a table of
    all edges with their sources."""
    lines = ["```mermaid", "stateDiagram-v2"]
    for state, target in dict.fromkeys((edge.state, edge.target) for edge in EDGES):
        why = ", ".join(edge.cause for edge in EDGES if (edge.state, edge.target) == (state, target))
        lines.append(f"    {_name(state)} --> {_name(target)}: {why}")
    lines += ["```", "", "| from | by | to | pod_workers.go |", "|---|---|---|---|"]
    lines += [f"| {edge.state.name} | {edge.cause} | {edge.target.name} | {edge.source} |" for edge in EDGES]
    return "\n".join([*lines, ""])


def _name(state: State) -> str:
    return "[*]" if state is State.UNKNOWN else state.name


def written(text: str) -> str:
    """`text` of the page with the picture of now."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin and end, f"{PAGE} has no lines {BEGIN.strip()} and {END.strip()}"
    return f"{head}{BEGIN}{diagram()}{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
