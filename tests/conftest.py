"""What every test needs: the helpers in tests/support say what was compared when an assertion fails."""

from pathlib import Path

import pytest

SUPPORT = Path(__file__).parent / "support"
pytest.register_assert_rewrite("scenario", *(path.stem for path in sorted(SUPPORT.glob("*.py"))))
