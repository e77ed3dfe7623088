"""What the tests of the load share lies in tests/support."""

import sys
from pathlib import Path

SUPPORT = str(Path(__file__).resolve().parents[2] / "support")
if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)
