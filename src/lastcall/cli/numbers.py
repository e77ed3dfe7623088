"""Numbers on the command line, with errors that name the value and what would do."""

import math
from typing import Any

import click


class Whole(click.ParamType):  # type: ignore[type-arg]
    """A whole number of `least` to `most`, both included; `unit` is what it counts."""

    name = "integer"

    def __init__(self, least: int, most: int, unit: str = "") -> None:
        self._least, self._most, self._unit = least, most, unit and f" of {unit}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number: {self._wanted()}", param, ctx)
        if not self._least <= number <= self._most:
            word = "few" if number < self._least else "many"
            self.fail(f"{value} is too {word}: {self._wanted()}", param, ctx)
        return number

    def _wanted(self) -> str:
        return f"give a whole number{self._unit} from {self._least} to {self._most}"


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """A number of seconds up to a day; 0 only with `zero`."""

    name = "float"
    MOST = 86400

    def __init__(self, *, zero: bool) -> None:
        self._zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{value!r} is no number of seconds: {self._wanted()}", param, ctx)
        if number < 0 or number > self.MOST or (number == 0 and not self._zero):
            word = "many" if number > self.MOST else "few"
            self.fail(f"{value} is too {word}: {self._wanted()}", param, ctx)
        return number

    def _wanted(self) -> str:
        return f"give seconds, as 30 or 0.5, {'0 or more' if self._zero else 'more than 0'} and at most {self.MOST}"
