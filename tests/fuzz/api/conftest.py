"""The helpers of tests/support and of the API's fuzzer are modules of their own."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for directory in (str(HERE.parents[1] / "support"), str(HERE)):
    if directory not in sys.path:
        sys.path.insert(0, directory)
