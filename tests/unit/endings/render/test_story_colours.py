"""The page's colours: WCAG 2.2 contrast of every pair of tokens that meet, in light and in dark."""

import re
from importlib import resources

import pytest

CSS = (resources.files("lastcall.endings.render") / "assets" / "story.css").read_text("utf-8")

TEXT = [
    ("ink", "page"), ("ink", "panel"), ("ink", "lane"), ("muted", "page"), ("muted", "panel"), ("muted", "lane"),
    ("link", "panel"), ("link", "page"), ("signal", "panel"), ("signal", "lane"), ("kill", "panel"), ("kill", "lane"),
    ("good", "panel"), ("bad", "panel"), ("err", "lane"), ("on-step", "step"), ("on-mark", "signal"),
    ("on-mark", "kill"), ("on-mark", "good"), ("on-mark", "bad"), ("panel", "ink"), ("on-running", "running"),
    *((f"on-{kind}", kind) for kind in ("preStop", "waiting", "drain", "overrun", "ready", "serving", "terminating")),
    *(("on-badge", kind) for kind in ("graceful", "killed", "hookFailed", "unknown")),
]  # fmt: skip
"""Foreground and background of text: at least 4.5."""

SHAPES = [
    *((kind, ground) for kind in ("step", "signal", "kill", "good", "bad", "edge", "playhead", "focus")
      for ground in ("panel", "lane")),
    *((kind, "panel") for kind in ("preStop", "waiting", "drain", "overrun", "ready", "serving", "terminating")),
]  # fmt: skip
"""Marks, phases and borders of controls: at least 3."""


def tokens(scheme):
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)[:2]
    found = dict(re.findall(r"--([\w-]+): (#\w+);", light))
    assert len(found) > 30
    if scheme == "dark":
        own = dict(re.findall(r"--([\w-]+): (#\w+);", dark))
        assert set(own) == set(found)  # none is forgotten
        found = own
    return found


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_the_arithmetic_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXT, 4.5), (SHAPES, 3.0)], ids=["text", "shapes"])
def test_every_pair_that_meets_can_be_told_apart(scheme, pairs, least):
    known = tokens(scheme)
    weak = [(a, b, round(contrast(known[a], known[b]), 2)) for a, b in pairs if contrast(known[a], known[b]) < least]
    assert weak == []


def test_every_colour_in_the_style_is_a_token():
    rest = re.sub(r"(?s):root \{.*?\}", "", CSS)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![\w-]*[,{ ]*path)", rest) == []
    used = set(re.findall(r"var\(--([\w-]+)\)", rest))
    assert used <= set(tokens("light"))
