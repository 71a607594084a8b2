"""Numbers of a paper next to Millstream's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.papers.charts import Chart


@dataclass(frozen=True)
class Number:
    """The paper's value, in figures or words, and the one found here. `paper` is None if the paper
    has no value; this project's bounds and values go into `note`."""

    where: str
    what: str
    paper: float | str | None
    ours: float
    note: str = ""


@dataclass(frozen=True)
class Findings:
    numbers: Sequence[Number] = ()
    charts: Sequence[Chart] = field(default=())

    def __add__(self, other: Findings) -> Findings:
        return Findings([*self.numbers, *other.numbers], [*self.charts, *other.charts])


def as_json(findings: Findings) -> dict[str, Any]:
    return {
        "numbers": [asdict(number) for number in findings.numbers],
        "charts": {
            chart.name: {"title": chart.title, "x": chart.x, "y": chart.y, "lines": chart.lines}
            for chart in findings.charts
        },
    }


def as_text(numbers: Sequence[Number]) -> str:
    lines = [("where", "what", "paper", "here", "")]
    lines += [(n.where, n.what, _shown(n.paper), _shown(n.ours), n.note) for n in numbers]
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    return "\n".join(
        f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}  {e}".rstrip()
        for a, b, c, d, e in lines
    )


def _shown(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
