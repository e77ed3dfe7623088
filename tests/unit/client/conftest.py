"""Makes the helpers in tests/support importable."""

import sys
from pathlib import Path

SUPPORT = str(Path(__file__).parents[2] / "support")
if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)

from shared_objects import shared_objects_stay_as_they_are  # noqa: E402, F401 (a fixture of every test here)
