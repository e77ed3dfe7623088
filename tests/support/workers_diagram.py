"""The transitions of the Pod workers as a picture in docs/architecture/deletion.md, made of the table in the code.

`python tests/support/workers_diagram.py` writes it.
"""

from pathlib import Path

from lastcall.node.workers.transitions import TRANSITIONS, State

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture" / "deletion.md"
BEGIN, END = "<!-- workers: begin -->\n", "<!-- workers: end -->\n"


def diagram() -> str:
    """A Mermaid state diagram: one arrow for each pair of states, with every cause that leads that way."""
    lines = ["```mermaid", "stateDiagram-v2"]
    for state, causes in TRANSITIONS.items():
        for target in dict.fromkeys(causes.values()):
            why = ", ".join(cause.value for cause, to in causes.items() if to is target)
            lines.append(f"    {_name(state)} --> {_name(target)}: {why}")
    return "\n".join([*lines, "```", ""])


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
