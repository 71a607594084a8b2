"""Line charts as SVG, light or dark as the reader's screen is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 76, 160, 48, 52  # margins
COLOURS = ("#2f6fb0", "#c4442f", "#2c8a43", "#8250df", "#b27606", "#0f7f8c")

_STYLE = """\
text { font: 12px ui-sans-serif, system-ui, Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 14px; font-weight: 600 }
.faint { fill: #656d76 }
.card { fill: #ffffff; stroke: #d0d7de }
.grid { stroke: #e4e8ec }
.line { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.faint { fill: #9198a1 }
.card { fill: #0d1117; stroke: #3d444d }
.grid { stroke: #21262d }
}
"""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """`logarithmic` is the y axis; otherwise it begins at 0. A line in `dashes` says what a model
    has in place of the line that it names, in the same colour."""

    name: str  # of its file
    title: str
    x: str
    y: str
    lines: Mapping[str, Points]
    logarithmic: bool = False
    dashes: Mapping[str, str] = field(default_factory=dict)

    def svg(self) -> str:
        parts = [
            f'<rect class="card" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
            _text(20, 28, self.title, "title"),
            *self._axes(),
            *self._drawn(),
            *self._legend(),
        ]
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        head += f'width="{WIDTH}" height="{HEIGHT}" role="img">'
        return "\n".join([head, f"<title>{escape(self.title)}</title>",
                          f"<style>{_STYLE}</style>", *parts, "</svg>\n"])  # fmt: skip

    # --- scales ----------------------------------------------------------------------------------

    def _values(self, axis: int) -> list[float]:
        return [point[axis] for points in self.lines.values() for point in points]

    def _x_ticks(self) -> list[float]:
        least = 1.0 if all(value == int(value) for value in self._values(0)) else 0.0
        return _ticks(min(self._values(0)), max(self._values(0)), least)

    def _y_ticks(self) -> list[float]:
        low, high = min(self._values(1)), max(self._values(1))
        if not self.logarithmic:
            return _ticks(0.0, high)
        return [10.0**power for power in range(floor(log10(low)), ceil(log10(high)) + 1)]

    def _place(self, x: float, y: float) -> tuple[float, float]:
        xs, ys = self._x_ticks(), self._y_ticks()
        across = (x - xs[0]) / (xs[-1] - xs[0])
        if self.logarithmic:
            up = (log10(y) - log10(ys[0])) / (log10(ys[-1]) - log10(ys[0]))
        else:
            up = (y - ys[0]) / (ys[-1] - ys[0])
        width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + across * width, HEIGHT - BOTTOM - up * height

    # --- parts -----------------------------------------------------------------------------------

    def _axes(self) -> Iterator[str]:
        xs, ys = self._x_ticks(), self._y_ticks()
        for y in ys:
            left, at = self._place(xs[0], y)
            right, _ = self._place(xs[-1], y)
            yield f'<path class="grid" d="M{left:.1f} {at:.1f}H{right:.1f}"/>'
            yield _text(left - 8, at + 4, _number(y), "faint", "end")
        for x in xs:
            at, bottom = self._place(x, ys[0])
            yield _text(at, bottom + 18, _number(x), "faint", "middle")
        middle = (LEFT + WIDTH - RIGHT) / 2
        yield _text(middle, HEIGHT - 14, self.x, "", "middle")
        centre = (TOP + HEIGHT - BOTTOM) / 2
        turned = f'transform="rotate(-90 18 {centre:.1f})"'
        yield _text(18, centre, self.y, "", "middle", turned)

    def _drawn(self) -> Iterator[str]:
        for name, points in self.lines.items():
            colour = self._colour(name)
            places = [self._place(*point) for point in points]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            dash = ' stroke-dasharray="5 4"' if name in self.dashes else ""
            yield f'<polyline class="line" stroke="{colour}"{dash} points="{path}"/>'
            if name not in self.dashes and len(points) <= 30:
                for x, y in places:
                    yield f'<circle fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'

    def _colour(self, name: str) -> str:
        drawn = [each for each in self.lines if each not in self.dashes]
        return COLOURS[drawn.index(self.dashes.get(name, name))]

    def _legend(self) -> Iterator[str]:
        for place, name in enumerate(self.lines):
            colour = self._colour(name)
            x, y = WIDTH - RIGHT + 14, TOP + 14 + 20 * place
            dash = ' stroke-dasharray="5 4"' if name in self.dashes else ""
            yield f'<path class="line" stroke="{colour}"{dash} d="M{x} {y}h22"/>'
            yield _text(x + 28, y + 4, name)


def _ticks(low: float, high: float, least: float = 0.0) -> list[float]:
    """About five round numbers around these, that far apart at least.

    >>> _ticks(0, 47)
    [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    """
    span = (high - low) or 1.0
    rough = span / 5
    power = 10.0 ** floor(log10(rough))
    step = next(power * times for times in (1, 2, 2.5, 5, 10) if power * times >= rough * 0.99)
    step = max(step, least)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(step * i, 10) for i in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _text(
    x: float, y: float, words: str, style: str = "", anchor: str = "start", more: str = ""
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}" {more}>'
        f"{escape(words)}</text>"
    )
