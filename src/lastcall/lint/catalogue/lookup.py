"""The door to the catalogue."""

from collections.abc import Mapping

from lastcall.lint.catalogue.api import API
from lastcall.lint.catalogue.endings import ENDINGS
from lastcall.lint.catalogue.rule import Rule
from lastcall.lint.catalogue.together import TOGETHER

RULES: Mapping[str, Rule] = {rule.id: rule for rule in (*API, *ENDINGS, *TOGETHER)}
"""Every rule by its id. Ids are part of the JSON and of suppressions: they stay."""
