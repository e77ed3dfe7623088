"""docs/lint.md says what the catalogue says."""

import re

from lint_docs import DOCUMENT, with_table

from lastcall.lint.catalogue.lookup import RULES


def test_the_table_of_rules_is_that_of_the_catalogue():
    text = DOCUMENT.read_text()
    assert with_table(text) == text, "python tests/support/lint_docs.py writes it"


def test_the_table_beside_other_linters_names_rules_that_are_there():
    beside = DOCUMENT.read_text().partition("## Beside other linters")[2]
    named = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", beside, re.MULTILINE)
    rules = {each for cell in named for each in re.findall(r"`(\w+)`", cell)}
    assert rules
    assert rules <= set(RULES)
