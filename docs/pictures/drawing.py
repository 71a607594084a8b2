"""Time lines and graphs as SVG, light or dark as the reader's screen is.

Time runs in columns, one an instant. What holds in an interval is a bar over its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

_STYLE = """\
text { font: 13px ui-sans-serif, system-ui, Helvetica, Arial, sans-serif; fill: #1f2328 }
.small { font-size: 11px }
.faint { fill: #656d76 }
.bold { font-weight: 600 }
.card { fill: #ffffff; stroke: #d0d7de }
.grid { stroke: #e4e8ec }
.edge { stroke: #656d76; fill: none }
.head { fill: #656d76 }
.instant { fill: #bf3989; fill-opacity: 0.13; stroke: #bf3989; stroke-dasharray: 4 3 }
.told { fill: #99286e }
.row { fill: #ddeeff; stroke: #2f6fb0 }
.answer { fill: #dcf3e1; stroke: #2c8a43 }
.padded { fill: #fdeccb; stroke: #b27606 }
.gone { fill: none; stroke: #8c959f; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.faint { fill: #9198a1 }
.card { fill: #0d1117; stroke: #3d444d }
.grid { stroke: #21262d }
.edge { stroke: #9198a1 }
.head { fill: #9198a1 }
.instant { fill: #f778ba; fill-opacity: 0.16; stroke: #f778ba }
.told { fill: #f9a8d4 }
.row { fill: #10315c; stroke: #58a6ff }
.answer { fill: #0f3a20; stroke: #3fb950 }
.padded { fill: #4a3306; stroke: #d9a13b }
.gone { stroke: #6e7681 }
}
"""


@dataclass(frozen=True)
class Bar:
    """What holds in [start, end), and what is written on it."""

    text: str
    start: int
    end: int
    kind: str = "row"


@dataclass(frozen=True)
class Lane:
    """Bars under one heading; those that overlap lie below each other."""

    title: str
    bars: Sequence[Bar]
    note: str = ""

    def rows(self) -> list[list[Bar]]:
        rows: list[list[Bar]] = []
        for bar in self.bars:
            free = (row for row in rows if row[-1].end <= bar.start)
            row = next(free, None)
            if row is None:
                rows.append(row := [])
            row.append(bar)
        return rows


@dataclass
class TimeLine:
    """Lanes below the instants from `first` to `last`; `at` marks one of them."""

    first: int
    last: int
    lanes: Sequence[Lane]
    at: int | None = None
    told: str = ""  # what is said of the marked instant
    column: int = 46
    margin: int = 216
    parts: list[str] = field(default_factory=list)

    def svg(self) -> str:
        width = self.margin + (self.last - self.first + 1) * self.column + 24
        y = 46
        for lane in self.lanes:
            y = self._lane(lane, y) + 14
        bottom = y - 4
        height = bottom + (30 if self.told else 8)
        before = [*self._columns(bottom), *self._instant(bottom)]
        return picture(width, height, [*before, *self.parts])

    def _x(self, instant: int) -> int:
        return self.margin + (instant - self.first) * self.column

    def _columns(self, bottom: int) -> Iterator[str]:
        yield text(20, 28, "time", "faint")
        for instant in range(self.first, self.last + 1):
            x = self._x(instant)
            yield f'<line class="grid" x1="{x}" y1="38" x2="{x}" y2="{bottom}"/>'
            yield text(x + self.column / 2, 28, str(instant), "faint", "middle")
        x = self._x(self.last + 1)
        yield f'<line class="grid" x1="{x}" y1="38" x2="{x}" y2="{bottom}"/>'

    def _instant(self, bottom: int) -> Iterator[str]:
        if self.at is None:
            return
        x = self._x(self.at)
        yield (
            f'<rect class="instant" x="{x}" y="12" width="{self.column}" '
            f'height="{bottom - 12}" rx="4"/>'
        )
        half = 4.2 * len(self.told)  # about, so that it stays on the card
        right = self._x(self.last + 1) + 10
        middle = min(x + self.column / 2, right - half)
        yield text(middle, bottom + 18, self.told, "told bold", "middle")

    def _lane(self, lane: Lane, y: int) -> int:
        self.parts.append(text(20, y + 17, lane.title, "bold"))
        if lane.note:
            self.parts.append(text(20, y + 33, lane.note, "small faint"))
        rows = lane.rows()
        for row in rows:
            for bar in row:
                if bar.start <= self.last:
                    self._bar(bar, y)
            y += 30
        least = 2 if lane.note else 1
        return y + 18 * max(0, least - len(rows))

    def _bar(self, bar: Bar, y: int) -> None:
        left, right = self._x(bar.start) + 2, self._x(min(bar.end, self.last + 1)) - 2
        shape = f'<rect class="{bar.kind}" x="{left}" y="{y}" width="{right - left}" '
        self.parts.append(shape + 'height="24" rx="4"/>')
        ahead = "  →" if bar.end > self.last + 1 else ""
        self.parts.append(text((left + right) / 2, y + 16.5, bar.text + ahead, "", "middle"))


# --- graphs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """A box with lines of text, and the boxes below it with what is told of the way from each."""

    lines: Sequence[str]
    inputs: Sequence[tuple[Node, str]] = ()
    kind: str = "row"


_BOX, _GAP, _BETWEEN, _LONGEST = 300, 30, 56, 46


def graph(root: Node) -> str:
    parts: list[str] = []
    _draw(root, 20, 20, parts)
    return picture(int(_span(root)) + 40, _depth(root) + 40, parts)


def _height(node: Node) -> int:
    return 32 + 16 * (len(node.lines) - 1)


def _depth(node: Node) -> int:
    below = max((_depth(input) + _BETWEEN for input, _ in node.inputs), default=0)
    return _height(node) + below


def _span(node: Node) -> float:
    below = [_span(input) for input, _ in node.inputs]
    return max(_BOX, sum(below) + _GAP * (len(below) - 1))


def _draw(node: Node, left: float, y: float, parts: list[str]) -> float:
    """Draw a node and all below it; the middle of its box."""
    middle = left + _span(node) / 2
    bottom = y + _height(node)
    for below, told in node.inputs:
        x = _draw(below, left, bottom + _BETWEEN, parts)
        parts.append(_edge(x, bottom + _BETWEEN, middle, bottom))
        side, anchor = (-12, "end") if x < middle else (12, "start")
        parts.append(text(x + side, bottom + _BETWEEN - 14, told, "small faint", anchor))
        left += _span(below) + _GAP
    box = f'<rect class="{node.kind}" x="{middle - _BOX / 2:g}" y="{y:g}" width="{_BOX}" '
    parts.append(box + f'height="{_height(node)}" rx="6"/>')
    for number, line in enumerate(node.lines):
        line = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
        style = "small" if number else "bold"
        parts.append(text(middle, y + 20 + 16 * number, line, style, "middle"))
    return middle


def _edge(x: float, y: float, to_x: float, to_y: float) -> str:
    """From the top of a box to the bottom of the one that reads it, with a head."""
    bend = (y + to_y) / 2 + 4
    path = f"M{x:g} {y:g} C{x:g} {bend:g} {to_x:g} {bend:g} {to_x:g} {to_y + 8:g}"
    head = f"M{to_x - 5:g} {to_y + 9:g} L{to_x:g} {to_y + 1:g} L{to_x + 5:g} {to_y + 9:g} Z"
    return f'<path class="edge" d="{path}"/><path class="head" d="{head}"/>'


# --- parts ----------------------------------------------------------------------------------------


def text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    style = f' class="{style}"' if style else ""
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:g}" y="{y:g}"{style}{place} xml:space="preserve">{escape(words)}</text>'


def picture(width: int, height: int, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">'
    )
    card = f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    return "\n".join([head, f"<style>\n{_STYLE}</style>", card, *parts, "</svg>\n"])
