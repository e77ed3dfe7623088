"""The page's colors as people see them who see colors differently: words stay legible, and what looks alike has a sign.

The matrices are those of Machado, Oliveira and Fernandes (2009) for a whole deficiency, on linear RGB; distances are
CIE76's.
"""

import math
import re
from itertools import combinations, product
from pathlib import Path

import pytest

PAGE_SOURCES = Path(__file__).parents[3] / "ui/src"
STYLE = (PAGE_SOURCES / "style.css").read_text() + (PAGE_SOURCES / "rollout.css").read_text()
LIGHT, DARK = (dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part)) for part in STYLE.split("@media", 2)[:2])
SCHEMES = {"light": LIGHT, "dark": DARK}
VISIONS = {
    "all colors": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
    "achromatopsia": ((0.2126, 0.7152, 0.0722),) * 3,
}
Color = tuple[float, float, float]
ALIKE = 20.0
"""Colors so near each other are not told apart for certain: small parts, side by side with others."""
LEGIBLE, TO_BE_SEEN = 4.5, 3.0
"""WCAG 2.2, 1.4.3 and 1.4.11."""


def linear(text: str) -> Color:
    parts = [int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return red, green, blue


def seen(color: Color, vision: str) -> Color:
    red, green, blue = (
        min(1.0, max(0.0, sum(a * b for a, b in zip(row, color, strict=True)))) for row in VISIONS[vision]
    )
    return red, green, blue


def luminance(color: Color) -> float:
    return 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]


def contrast(one: Color, other: Color) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(color: Color) -> Color:
    red, green, blue = color
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    a, b, c = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, luminance(color), z))
    return 116 * b - 16, 500 * (a - b), 200 * (b - c)


def alike(one: str, other: str) -> list[tuple[str, str]]:
    """The schemes and visions in which two colors of the palette are not told apart."""
    return [
        (scheme, vision)
        for (scheme, palette), vision in product(SCHEMES.items(), VISIONS)
        if math.dist(*(lab(seen(linear(palette[name]), vision)) for name in (one, other))) < ALIKE
    ]


def test_the_simulation_confuses_what_is_known_to_be_confused() -> None:
    red, green = linear("#c80000"), linear("#747400")
    near = {name: math.dist(lab(seen(red, name)), lab(seen(green, name))) for name in VISIONS}
    assert near["deuteranopia"] < 30 < min(near["tritanopia"], near["all colors"])
    assert all(seen(linear("#ffffff"), name) == pytest.approx((1, 1, 1), abs=0.01) for name in VISIONS)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_words_are_legible_and_parts_are_seen_in_every_vision(scheme: str, vision: str) -> None:
    palette = {name: seen(linear(text), vision) for name, text in SCHEMES[scheme].items()}
    for word, ground in product(("fg", "soft", "accent", "good", "bad", "warn"), ("bg", "panel")):
        assert contrast(palette[word], palette[ground]) >= LEGIBLE, (word, ground)
    for ground in ("ready", "wait", "term", "dead", "plain", "hook", "drain", "over"):
        assert contrast(palette["fg"], palette[ground]) >= LEGIBLE, ground
    for part in ("soft", "warn", "bad", "accent", "good"):
        assert contrast(palette[part], palette["panel"]) >= TO_BE_SEEN, part


def fills() -> dict[str, str]:
    """Class → the color that fills it."""
    found = {}
    for selectors, name in re.findall(r"^([^{}@]+) \{ fill: var\(--(\w+)\)", STYLE, re.M):
        found |= {each.strip().rpartition(" ")[2].removeprefix("."): name for each in selectors.split(",")}
    return found


def entries(source: str, table: str) -> dict[str, str]:
    """The lines of a table of strings, or of lists of them, as they stand in TypeScript."""
    (body,) = re.findall(rf"const {table}[^=]*= \{{(.*?)\}}(?: as const)?;", (PAGE_SOURCES / source).read_text(), re.S)
    return {key.strip('"'): value for key, value in re.findall(r'("?\w+"?): ("[^"]*"|\[[^\]]*\])', body)}


def test_bars_of_a_story_that_look_alike_differ_in_their_texture() -> None:
    textures = {kind: value.strip('"') for kind, value in entries("lanes.tsx", "TEXTURES").items()}
    bars = {name.removeprefix("b-"): color for name, color in fills().items() if name.startswith("b-")}
    assert {"ready", "preStop", "drain", "serving", "overrun", "waiting"} <= set(bars)
    assert set(textures) <= set(bars)
    mixed = [
        (one, other)
        for one, other in combinations(bars, 2)
        if bars[one] != bars[other] and textures.get(one) == textures.get(other) and alike(bars[one], bars[other])
    ]
    assert mixed == []
    assert alike("ready", "hook") and alike("drain", "term")  # so textures are needed


def test_what_became_of_requests_and_what_a_pod_does_differ_in_texture_or_shape() -> None:
    keys = {kind: re.findall(r'"([^"]*)"', value) for kind, value in entries("rollout_picture.tsx", "KEYS").items()}
    colors = fills()
    for group in (("answered", "moved", "lost"), ("ready", "hook", "drain")):
        for one, other in combinations(group, 2):
            first, second = (colors[keys[each][0].rpartition(" ")[2]] for each in (one, other))
            assert keys[one][1] != keys[other][1] or not alike(first, second), (one, other)
    shapes = entries("rollout_picture.tsx", "GLYPHS")
    assert len(set(shapes.values())) == 2 == len(shapes)
    assert ("light", "deuteranopia") in alike("bad", "warn")  # lost and moved: so textures and shapes are needed


def test_states_of_cells_and_marks_of_steps_have_signs_of_their_own() -> None:
    signs = entries("overview.tsx", "SIGNS")
    assert len(signs) == 6 == len(set(signs.values()))
    marks = entries("lanes.tsx", "GLYPHS")
    assert len(marks) >= 7 and len(set(marks.values())) == len(marks)
