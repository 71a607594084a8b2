"""Who wins when: the plans that G5 compares, on its queries, and the order that it found.

G5 §6, figures 9 to 17: negative tuples (NT), intervals with lists (DIRECT) and structures that
follow the update pattern (UPA), over windows of 2,000 to 200,000 units, in processor time for 1,000
rows or in bytes of state. Each result is kept up to date (`views.py`). Joins expire lazily, by 5 %
of the window; everything else with each batch. The papers take one row at a time; here a batch has
100, since with one row what is measured is the interpreter.

Where duplicates are eliminated, DIRECT has δ* too: that it keeps only its result in a list is what
differs. Space is that of the operators: the result of δ* comes here in a piece for each row that
makes it last longer, and not for each row of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from benchmarks.driving import Drive, physical
from benchmarks.papers import golab_ozsu
from benchmarks.papers.views import CalendarView, ListView, View
from millstream.optimizer.choice import Approach, Choices
from millstream.physical.areas.area import Probing
from millstream.physical.areas.calendar import Closing
from millstream.physical.operators.join import AreaChoice

BATCH = 100
FILL = 10_000  # rows a batch until the windows are full
CLOSE = 1.1  # costs that differ by less are the same

Types = Sequence[pa.DataType]


@dataclass(frozen=True)
class Plan:
    """A way to run a query, and to keep its result."""

    query: str
    approach: Approach
    view: Callable[[Types], View]
    areas: AreaChoice = field(default_factory=AreaChoice)


@dataclass(frozen=True)
class Claim:
    """What a paper says: the first costs less than the second, in some lines of a table."""

    less: str
    more: str
    lines: slice = field(default_factory=lambda: slice(None))
    where: str = ""

    def __str__(self) -> str:
        return f"{self.less} < {self.more}" + (f", {self.where}" if self.where else "")


SHORT = slice(0, 1), "short windows"
LONG = slice(-1, None), "long windows"


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    plans: Mapping[str, Plan]
    claims: Sequence[Claim]
    space: bool = False


# --- plans ----------------------------------------------------------------------------------------


def _list(types: Types) -> View:
    return ListView(types)


def _calendar(partitions: int, closing: Closing | None = None) -> Callable[[Types], View]:
    return lambda types: CalendarView(types, partitions, closing)


_TABLE = _calendar(10, Closing.KEYED)


def _upa(query: str, partitions: int = 10) -> Plan:
    areas = AreaChoice(partitions=partitions)
    return Plan(query, Approach.HYBRID, _calendar(partitions), areas)


def _direct(query: str) -> Plan:
    return Plan(query, Approach.HYBRID, _list)


def _nt(query: str) -> Plan:
    return Plan(query, Approach.SIGNED, _TABLE)


def _three(query: str) -> dict[str, Plan]:
    return {"UPA(10)": _upa(query), "DIRECT": _direct(query), "NT": _nt(query)}


def _loops(query: str) -> Plan:
    return Plan(query, Approach.HYBRID, _calendar(10), AreaChoice(Probing.LOOP))


_FASTEST = (Claim("UPA(10)", "DIRECT"), Claim("UPA(10)", "NT"))

FIGURES: Sequence[Figure] = (
    Figure(
        "G5 figure 9",
        "query 1, ftp: join with a small result",
        {**_three("1 ftp"), "nested loops": _loops("1 ftp")},
        (*_FASTEST, Claim("DIRECT", "NT")),
    ),
    Figure(
        "G5 figure 10",
        "query 1, telnet: join with a large result",
        {**_three("1 telnet"), "UPA(50)": _upa("1 telnet", 50)},
        (
            Claim("UPA(50)", "NT", *LONG),
            Claim("UPA(50)", "UPA(10)", *LONG),
            Claim("NT", "DIRECT", *LONG),
        ),
    ),
    Figure("G5 figure 11", "query 2: distinct sources", _three("2 sources"), _FASTEST),
    Figure(
        "G5 figure 12",
        "query 2: distinct pairs of source and destination",
        _three("2 pairs"),
        (*_FASTEST, Claim("NT", "DIRECT", *LONG)),
    ),
    Figure(
        "G5 figure 13",
        "query 2: distinct sources, space",
        _three("2 sources"),
        (Claim("UPA(10)", "NT"),),
        space=True,
    ),
    Figure(
        "G5 figure 14",
        "query 2: distinct pairs, space",
        _three("2 pairs"),
        (Claim("UPA(10)", "NT"),),
        space=True,
    ),
    Figure(
        "G5 figure 15",
        "query 3: negation",
        {
            "UPA(10)": Plan("3", Approach.HYBRID, _calendar(10, Closing.SCANNED)),
            "UPA keyed": Plan("3", Approach.HYBRID, _TABLE),
            "NT": _nt("3"),
        },
        (Claim("UPA(10)", "NT", *SHORT), Claim("NT", "UPA(10)", *LONG)),
    ),
    Figure(
        "G5 figure 16",
        "query 4: join of distinct sources",
        _three("4"),
        (*_FASTEST, Claim("NT", "DIRECT", *LONG)),
    ),
    Figure(
        "G5 figure 17",
        "query 5: negation and join",
        {
            "UPA(join down)": Plan("5 negation above", Approach.HYBRID, _TABLE),
            "NT(join up)": _nt("5 negation below"),
            "NT": _nt("5 negation above"),
        },
        (
            Claim("NT(join up)", "NT"),
            Claim("NT(join up)", "UPA(join down)", *SHORT),
            Claim("UPA(join down)", "NT(join up)", *LONG),
        ),
    ),
)


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    milliseconds: float  # of processor time, for 1,000 rows
    state: int  # bytes, without the result


def cost(plan: Plan, window: int) -> Cost:
    """Of rows after the windows have been filled and half of them has passed again."""
    full, timed = window * 3 // 2, max(4_000, window // 10)
    links = golab_ozsu.links(window, (full + timed) / window)
    lazy = int(window * golab_ozsu.LAZY_EXPIRY)
    areas = AreaChoice(plan.areas.probing, partitions=plan.areas.partitions, lazy=lazy)
    text = golab_ozsu.queries(window)[plan.query]
    choices = Choices(approach=plan.approach, areas=areas)
    chosen = physical(text, links, "ts", choices, emit="ELEMENTS")
    view = plan.view(chosen.types)
    drive = Drive(chosen, links, "ts", view.take)
    drive.push_rows(full, FILL)
    seconds = drive.timed(timed, BATCH)
    return Cost(1e6 * seconds, drive.nbytes)


def compare(figure: Figure, windows: Sequence[int]) -> list[dict[str, Cost]]:
    """By window and plan."""
    for plan in figure.plans.values():
        cost(plan, 200)  # compiles
    return [{name: cost(plan, w) for name, plan in figure.plans.items()} for w in windows]


def verdict(claim: Claim, costs: Sequence[Mapping[str, float]]) -> str:
    """Whether what was found is what the paper says."""
    pairs = [(each[claim.less], each[claim.more]) for each in costs[claim.lines]]
    if all(max(pair) <= CLOSE * min(pair) for pair in pairs):
        return "no difference here"
    if all(less <= more for less, more in pairs):
        return "agrees"
    return "agrees at some windows" if any(less < more for less, more in pairs) else "DIFFERS"


def show(
    name: str,
    unit: str,
    labels: Sequence[str],
    costs: Sequence[Mapping[str, float]],
    claims: Sequence[Claim],
) -> None:
    """A table, the order found in its last line, and what the paper says."""
    print(f"{name}; {unit}")
    print("  " + " " * 10 + "".join(f"{plan:>16}" for plan in costs[0]))
    for label, each in zip(labels, costs, strict=True):
        print(f"  {label:>10}" + "".join(f"{value:>16,.2f}" for value in each.values()))
    print("  found: " + " < ".join(sorted(costs[-1], key=lambda plan: costs[-1][plan])))
    for claim in claims:
        print(f"  paper: {claim}: {verdict(claim, costs)}", flush=True)
    print(flush=True)


def report(quick: bool = False) -> None:
    """Print every figure."""
    windows = golab_ozsu.WINDOWS[:3] if quick else golab_ozsu.WINDOWS
    for figure in FIGURES:
        found = compare(figure, windows)
        unit = "KiB of state" if figure.space else "ms for 1,000 rows"
        costs = [
            {n: c.state / 1024 if figure.space else c.milliseconds for n, c in each.items()}
            for each in found
        ]
        title = f"{figure.name}: {figure.title}"
        show(title, unit, [f"{w:,}" for w in windows], costs, figure.claims)
