"""Makes the helpers in tests/support importable."""

import sys
from pathlib import Path

SUPPORT = str(Path(__file__).parents[2] / "support")
if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)
