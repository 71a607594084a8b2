"""The plans that G5 compares (§6, figures 9 to 17), and what its figures say.

NT are negative tuples, DIRECT are intervals and a list of results, UPA are structures that follow
the update pattern, with a number of partitions. G5's DIRECT scans its list whenever time advances;
`DIRECT, batches` does so once per batch, like everything else here.

DIRECT needs δ* here, since its list accepts no negative elements; δ is the duplicate elimination
that keeps its input, as in G5's DIRECT, with a result kept by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from benchmarks.papers.claims import LONG, SHORT, Claim, Setting
from benchmarks.papers.views import CalendarView, ListView, View
from millstream.optimizer.choice import Approach
from millstream.physical.joins.areas.area import Probing
from millstream.physical.joins.areas.calendar import Closing
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.distinct import Distinct
from millstream.physical.operators.join import Join
from millstream.physical.operators.map import Map
from millstream.physical.operators.pointwise import Pointwise, PointwiseFunction

Types = Sequence[pa.DataType]


@dataclass(frozen=True)
class Plan:
    """A way to run a query, and to keep its result."""

    query: str
    approach: Approach
    view: Callable[[Types], View]
    areas: AreaChoice = field(default_factory=AreaChoice)
    rewrite: Callable[[PhysicalPlan], PhysicalPlan] | None = None
    unit: int | None = None  # how often a list is scanned, if not with each batch


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    plans: Mapping[str, Plan]
    claims: Sequence[Claim]
    space: bool = False


def _calendar(partitions: int, closing: Closing | None = None) -> Callable[[Types], View]:
    return lambda types: CalendarView(types, partitions, closing)


_TABLE = _calendar(10, Closing.KEYED)


def _upa(query: str, partitions: int = 10) -> Plan:
    areas = AreaChoice(partitions=partitions)
    return Plan(query, Approach.HYBRID, _calendar(partitions), areas)


def _direct(query: str, unit: int | None = 1) -> Plan:
    return Plan(query, Approach.HYBRID, ListView, unit=unit)


def _nt(query: str) -> Plan:
    return Plan(query, Approach.SIGNED, _TABLE)


def _keeps_input(query: str) -> Plan:
    return Plan(query, Approach.HYBRID, _TABLE, rewrite=_distinct_of_kept_input)


def _distinct_of_kept_input(plan: PhysicalPlan) -> PhysicalPlan:
    match plan:
        case Distinct():
            return Pointwise((plan.input,), PointwiseFunction.DISTINCT, plan.schema)
        case Map():
            return replace(plan, input=_distinct_of_kept_input(plan.input))
        case Join():
            left, right = map(_distinct_of_kept_input, plan.inputs)
            return replace(plan, left=left, right=right)
    return plan


def _three(query: str) -> dict[str, Plan]:
    return {
        "UPA(10)": _upa(query),
        "DIRECT": _direct(query),
        "DIRECT, batches": _direct(query, None),
        "NT": _nt(query),
    }


def _distinct(query: str) -> dict[str, Plan]:
    return {**_three(query), "δ": _keeps_input(query)}


def _space(query: str) -> dict[str, Plan]:
    return {"UPA(10)": _upa(query), "δ": _keeps_input(query), "NT": _nt(query)}


# Why the order differs here, where it does.
_COLUMN = (
    "a list is a column of ends here, and looking at one takes a nanosecond; taking an element "
    "through an operator takes a hundred, so a list has to be longer before it costs more"
)
_HASHED = (
    "G5's joins look through lists, so NT costs more the longer the window; here keys are hashed, "
    "and only the list of DIRECT grows with the window"
)
_WHOLE = (
    "partitions are not sorted here and are dropped whole when time has left them: each element is "
    "looked at once, however many partitions there are"
)
_NO_SCAN = "what is scanned is a chain of numbers: the result has to be longer before it costs more"
_PIECES = (
    "δ* gives a piece here for each row that makes a value last longer, and the join keeps those "
    "of a whole window; G5's gives the next one when the last one ends"
)
_NEGATIVE = (
    "a negative element costs as much as a positive one here, since keys are hashed; so the plan "
    "with fewer elements wins at every window, and this join makes nine results of a row"
)

_UP_TO_500_KB = Setting("up to 10,000 units (500 KB)", slice(0, 2))
_BEYOND_500_KB = Setting("beyond 10,000 units", slice(2, None))

FIGURES: Sequence[Figure] = (
    Figure(
        "G5 figure 9",
        "query 1, ftp: join with a small result",
        {
            **_three("1 ftp"),
            "calendars": replace(_upa("1 ftp"), areas=AreaChoice(calendar=True)),
            "nested loops": replace(_upa("1 ftp"), areas=AreaChoice(Probing.LOOP)),
        },
        (
            Claim("UPA(10)", "DIRECT", LONG, "nearly 2"),
            Claim("UPA(10)", "NT", LONG, "nearly 2"),
            Claim("DIRECT", "NT", why=_HASHED),
            Claim("DIRECT, batches", "NT", why=_HASHED),
        ),
    ),
    Figure(
        "G5 figure 10",
        "query 1, telnet: join with a large result",
        {**_three("1 telnet"), "UPA(50)": _upa("1 telnet", 50)},
        (
            Claim("NT", "DIRECT", times="by far", why=_COLUMN),
            Claim("UPA(10)", "NT", SHORT),
            Claim("UPA(50)", "UPA(10)", LONG, "much", why=_WHOLE),
            Claim("UPA(50)", "NT", LONG, "up to 10"),
        ),
    ),
    Figure(
        "G5 figure 11",
        "query 2: distinct sources",
        _distinct("2 sources"),
        (Claim("UPA(10)", "δ", times="10"), Claim("UPA(10)", "NT", times="10")),
    ),
    Figure(
        "G5 figure 12",
        "query 2: distinct pairs of source and destination",
        _distinct("2 pairs"),
        (
            Claim("UPA(10)", "NT", times="about 2"),
            Claim("UPA(10)", "DIRECT", LONG),
            Claim("NT", "DIRECT", LONG, why=_COLUMN),
        ),
    ),
    Figure(
        "G5 figure 13",
        "query 2: distinct sources, space",
        _space("2 sources"),
        (
            Claim("UPA(10)", "NT", times="up to 100"),
            Claim("UPA(10)", "δ", times="up to 100"),
        ),
        space=True,
    ),
    Figure(
        "G5 figure 14",
        "query 2: distinct pairs, space",
        _space("2 pairs"),
        (Claim("UPA(10)", "NT"), Claim("UPA(10)", "δ")),
        space=True,
    ),
    Figure(
        "G5 figure 15",
        "query 3: negation",
        {
            "UPA(10)": Plan("3", Approach.HYBRID, _calendar(10, Closing.SCANNED)),
            "UPA, by row": Plan("3", Approach.HYBRID, _TABLE),
            "NT": _nt("3"),
        },
        (
            Claim("UPA(10)", "NT", _UP_TO_500_KB, "slightly"),
            Claim("NT", "UPA(10)", _BEYOND_500_KB, why=_NO_SCAN),
        ),
    ),
    Figure(
        "G5 figure 16",
        "query 4: join of distinct sources",
        _distinct("4"),
        (
            Claim("UPA(10)", "NT"),
            Claim("UPA(10)", "δ", why=_PIECES),
            Claim("UPA(10)", "DIRECT", LONG),
            Claim("NT", "DIRECT", LONG, why=_COLUMN),
        ),
    ),
    Figure(
        "G5 §6.5",
        "query 4: join of distinct sources, space",
        _space("4"),
        (
            Claim("UPA(10)", "NT", times="up to 100", why=_PIECES),
            Claim("UPA(10)", "δ", times="up to 100", why=_PIECES),
        ),
        space=True,
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
            Claim("NT(join up)", "UPA(join down)", SHORT, why=_NEGATIVE),
            Claim("UPA(join down)", "NT(join up)", LONG, why=_NEGATIVE),
        ),
    ),
)
