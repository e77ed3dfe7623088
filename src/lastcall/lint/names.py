"""Names that are nearly the same: a typing error, or another thing. Pure; difflib comes with the first question."""

from collections.abc import Iterable, Mapping

_ALIKE = 0.8


def closest(name: str, others: Iterable[str]) -> str | None:
    """The one of `others` that `name` was probably meant to be; None where several may be meant, or none."""
    from difflib import get_close_matches

    names = list(dict.fromkeys(each for each in others if each and each != name))
    found = get_close_matches(name, names, n=2, cutoff=_ALIKE)
    if not found:
        found = [each for each in names if each.casefold() == name.casefold()]
    return found[0] if found else None


def similar_labels(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a selector differs from labels in one value (or key), and in that only a little."""
    wrong = [key for key, value in selector.items() if labels.get(key) != value]
    if len(wrong) != 1:
        return False
    key = wrong[0]
    if key in labels:
        return closest(selector[key], [labels[key]]) is not None
    return closest(key, [each for each in labels if labels[each] == selector[key]]) is not None


def labels_text(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items()) or "no labels"
