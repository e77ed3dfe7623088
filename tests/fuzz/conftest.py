"""The fuzzers' modules find each other by name, here as with `python tests/fuzz`."""

import sys
from pathlib import Path

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)
