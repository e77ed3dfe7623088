"""Where a moment stands in a rollout's picture."""

from lastcall.endings.render import Markup, percent, tag


class Scale:
    """Seconds since the disruption → shares of the width, true to scale."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, max(end, start + 0.001)

    def at(self, seconds: float) -> float:
        return min(max((seconds - self.start) / (self.end - self.start), 0.0), 1.0)

    def rect(self, start: float, end: float, y: int, height: int, class_: str, title: str) -> Markup | None:
        left, right = self.at(start), self.at(end)
        if right <= left:
            return None
        return tag(
            "rect",
            tag("title", title),
            x=percent(left),
            width=percent(right - left),
            y=y,
            height=height,
            rx=2,
            class_=class_,
        )

    def line(self, at: float, height: int, class_: str, title: str = "", y: int = 0) -> Markup:
        x = percent(self.at(at))
        return tag("line", tag("title", title) if title else None, x1=x, x2=x, y1=y, y2=height, class_=class_)

    def ticks(self) -> list[float]:
        step = next(
            each for each in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 300, 3600) if each * 14 >= self.end - self.start
        )
        first = -int(-self.start / step)
        return [number * step for number in range(first, int(self.end / step) + 1)]
