"""README's picture is made of the recording beside it."""

import re
import sys
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))

from make_demo_picture import PICTURE, RECORDING, lines, picture  # noqa: E402

TEXT = RECORDING.read_text("utf-8")
STEP = re.compile(r" +\+\d+\.\d+s  \w")


def test_the_picture_is_what_the_script_makes_of_the_recording() -> None:
    assert PICTURE.read_text("utf-8") == picture(TEXT), "python tools/make_demo_picture.py"


def test_the_picture_shows_every_step_and_the_cause() -> None:
    shown = [unescape(element.text or "") for element in ElementTree.fromstring(picture(TEXT)).iter() if element.text]
    assert sum(bool(STEP.match(line)) for line in shown) == sum(bool(STEP.match(line)) for line in TEXT.splitlines())
    assert any(line.startswith("✗ app was sent SIGKILL") for line in shown)


def test_lines_appear_at_the_second_of_their_step() -> None:
    moments = [at for at, _ in lines(TEXT)]
    assert moments == sorted(moments)
    (killed,) = [at for at, line in lines(TEXT) if "SIGKILL → PID" in line]
    assert killed > 10


def test_readme_shows_the_picture() -> None:
    assert "](docs/images/demo.svg)" in (ROOT / "README.md").read_text("utf-8")
