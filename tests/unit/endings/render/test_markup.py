"""Markup from Python: everything that is not markup is escaped."""

from lastcall.endings.render.markup import Markup, join, tag, text


def test_attributes_and_text_are_escaped_and_markup_is_not():
    assert tag("a", "<&>", None, ["x", 1], href="\"'<", class_="m", hidden=True, id=None, open=False) == (
        '<a href="&quot;&#x27;&lt;" class="m" hidden>&lt;&amp;&gt;x1</a>'
    )
    assert tag("p", Markup("<b>")) == "<p><b></p>"
    assert join(None) == ""
    assert text("a\nb") == "a\\nb"
