"""The claims of a paper's figure as data, and whether a run confirms them.

A claim is an order: one plan costs less than another, at some of the figure's settings. It is
checked against the measurements, and against the counted work, which is the same in every run:
elements that operators processed, and elements of state examined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

CLOSE = 1.1  # costs that differ by less count as equal


@dataclass(frozen=True)
class Cost:
    """The cost of a plan at one setting."""

    value: float  # what the figure shows: processor time or bytes
    elements: float  # that operators processed
    looked_at: float  # elements of state

    @property
    def work(self) -> float:
        return self.elements + self.looked_at


Costs = Mapping[str, Cost]  # by plan


@dataclass(frozen=True)
class Setting:
    """Some lines of a figure's table."""

    name: str
    lines: slice


EVERYWHERE = Setting("at every window", slice(None))
SHORT = Setting("at the shortest window", slice(0, 1))
LONG = Setting("at the longest window", slice(-1, None))


@dataclass(frozen=True)
class Claim:
    """`less` costs less than `more`; `times` is the paper's word for how much, and `why` says what
    is different here, if it is."""

    less: str
    more: str
    setting: Setting = EVERYWHERE
    times: str = ""
    why: str = ""

    def __str__(self) -> str:
        times = f" ({self.times})" if self.times else ""
        return f"{self.less} < {self.more} {self.setting.name}".rstrip() + times

    def ratios(self, costs: Sequence[Mapping[str, float]]) -> list[float]:
        """How many times as much the second costs."""
        return [_ratio(each[self.more], each[self.less]) for each in costs[self.setting.lines]]


def _ratio(more: float, less: float) -> float:
    return more / less if less else inf if more else 1.0


def verdict(ratios: Sequence[float]) -> str:
    """Whether the result agrees with the paper."""
    least, most = min(ratios), max(ratios)
    if most <= CLOSE and least >= 1 / CLOSE:
        return "the same here"
    word = "agrees" if least >= 1 / CLOSE else "agrees in part" if most > CLOSE else "DIFFERS"
    span = f"{least:.2f}" if f"{least:.2f}" == f"{most:.2f}" else f"{least:.2f} to {most:.2f}"
    return f"{word}, {span} times"


def show(
    title: str,
    unit: str,
    labels: Sequence[str],
    costs: Sequence[Costs],
    claims: Sequence[Claim],
    work: bool = True,
) -> None:
    """Tables of the measurements and, if requested, of the counted work; then each claim with its
    verdicts."""
    print(title)
    _table(unit, labels, _field(costs, "value"))
    if work:
        _table("elements taken", labels, _field(costs, "elements"))
        _table("elements looked at", labels, _field(costs, "looked_at"))
    for claim in claims:
        found = verdict(claim.ratios(_field(costs, "value")))
        counted = verdict(claim.ratios(_field(costs, "work")))
        print(f"  {claim}: {found}" + (f"; work: {counted}" if work else ""))
        if claim.why and not found.startswith("agrees,"):
            print(f"    {claim.why}")
    print(flush=True)


def _field(costs: Sequence[Costs], field: str) -> list[dict[str, float]]:
    return [{plan: getattr(cost, field) for plan, cost in each.items()} for each in costs]


def _table(heading: str, labels: Sequence[str], values: Sequence[Mapping[str, float]]) -> None:
    print(f"  {heading:<20}" + "".join(f"{plan:>16}" for plan in values[0]))
    for label, each in zip(labels, values, strict=True):
        digits = 2 if max(each.values()) < 1_000 else 0
        print(f"  {label:>20}" + "".join(f"{value:>16,.{digits}f}" for value in each.values()))
