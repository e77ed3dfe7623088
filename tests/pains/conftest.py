"""Which of the pains are tried."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-pains", action="store_true", help="Try every pain, not ten of them.")
