"""The page's types of words are those of the published schemas."""

import make_page_types


def test_the_types_of_the_page_are_made_of_the_schemas_as_they_are() -> None:
    assert make_page_types.FILE.read_text("utf-8") == make_page_types.page_types()


def test_a_type_is_every_word_of_its_property() -> None:
    assert 'export type Verdict = "nothing lost" | "requests lost" | "inconclusive";' in make_page_types.page_types()
    assert "null" not in make_page_types.page_types()
