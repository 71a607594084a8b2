"""Plans as data: what is written is read back equal, and what cannot be read is refused.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=3000 draws so many new ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa
import pytest
from benchmarks.gain import QUERIES, problems
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from conftest import Comparison
from effort import examples
from millstream.fragments.cutting import fragments_of
from millstream.fragments.edges import Fragment, Outputs
from millstream.fragments.plan_data import EDGE_KINDS, fragments_data, fragments_of_data
from millstream.logical import plan_data as logical
from millstream.logical.expressions import Expression, Literal
from millstream.logical.plan import Filter, Plan, SetOperation, Source, sources_of
from millstream.model import types
from millstream.model.structures import StructureError, type_data, type_of, value_data, value_of
from millstream.model.time import RAW_TIME
from millstream.model.values import NAN
from millstream.optimizer.optimize import optimize
from millstream.physical import plan_data as physical
from millstream.physical.joins.sides import Coded
from millstream.physical.operator import PhysicalPlan
from millstream.physical.operators.multi_join import MultiJoin
from millstream.physical.operators.semi_join import Numbered
from millstream.physical.operators.source import Source as OwnSource
from millstream.physical.signature import nodes_of
from oracle.agreement import Bench
from oracle.judged_streams import JudgedStream
from oracle.query_generator import cases
from oracle.random_streams import Tape
from runtime.random_plans import case_of
from runtime.schedule_agreement import Trial, expected_of

drawn = settings(max_examples=examples(150))

# Operators make these to speak of the facts of an input; no plan has them.
NOT_IN_PLANS = {Coded, Numbered}


def carried(data: dict[str, Any]) -> Any:
    """Through the text of a file."""
    return json.loads(json.dumps(data))


def check_logical(plan: Plan) -> None:
    data = logical.plan_data(plan)
    back = logical.plan_of(carried(data))
    assert back == plan
    assert back.schema == plan.schema  # also what the comparison of columns leaves out
    assert logical.plan_data(back) == data


def check_physical(plan: PhysicalPlan) -> None:
    data = physical.plan_data(plan)
    back = physical.plan_of(carried(data))
    assert back == plan
    assert back.schema == plan.schema
    assert back.pattern == plan.pattern
    assert physical.plan_data(back) == data
    assert count_nodes(back) == count_nodes(plan) == len(data["nodes"])
    check_fragments(fragments_of(plan))


def check_fragments(fragments: tuple[Fragment, ...]) -> None:
    data = fragments_data(fragments)
    back = fragments_of_data(carried(data))
    assert back == fragments
    assert fragments_data(back) == data
    for ours, theirs in zip(fragments, back, strict=True):
        assert count_nodes(ours.plan) == count_nodes(theirs.plan)


def count_nodes(plan: PhysicalPlan) -> int:
    """Each as often as it is there, not as often as it is referred to."""
    seen: dict[int, PhysicalPlan] = {}
    ahead = [plan]
    while ahead:
        node = ahead.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            ahead += node.inputs
    return len(seen)


def chosen(plan: Plan, trial: Trial) -> PhysicalPlan:
    streams = frozenset(sources_of(plan))
    return trial.chosen(plan, streams - trial.ordered_streams(streams))


@drawn
@given(st.binary(min_size=160, max_size=160), st.binary(min_size=160, max_size=160))
def test_random_plans(case: bytes, trial: bytes) -> None:
    plan, _ = case_of(Tape(case))
    for each in (plan, optimize(plan)):
        check_logical(each)
    check_physical(chosen(plan, Trial(Tape(trial))))


@drawn
@given(cases(), st.binary(min_size=160, max_size=160))
def test_random_queries(case: tuple[list[JudgedStream], str], trial: bytes) -> None:
    streams, text = case
    plan = expected_of(Bench(streams), text).plan
    for each in (plan, optimize(plan)):
        check_logical(each)
    check_physical(chosen(plan, Trial(Tape(trial))))


def test_queries_of_which_the_gain_is_measured() -> None:
    seen = 0
    for problem in problems():
        seen += 1
        check_logical(problem.plan)
        for _, plan in problem.planner.steps(problem.plan):
            check_logical(plan)
        check_physical(problem.written())
        check_physical(problem.chosen())
    assert seen == len(QUERIES)


# --- every class has a kind -----------------------------------------------------------------------


def concrete(base: type) -> set[type]:
    return {sub for own in base.__subclasses__() for sub in concrete(own)} | (
        {base} if is_dataclass(base) else set()
    )


def own(classes: set[type]) -> set[type]:
    """Without those that tests make."""
    return {made for made in classes if made.__module__.startswith("millstream.")}


def test_every_logical_node_has_a_kind() -> None:
    assert own(concrete(Plan)) - {SetOperation} == {*logical.PLAN_KINDS.values()}


def test_every_operator_has_a_kind() -> None:
    known = {*physical.OPERATOR_KINDS.values(), *EDGE_KINDS.values()}
    assert own(concrete(PhysicalPlan)) - NOT_IN_PLANS == known


def test_every_expression_has_a_kind() -> None:
    assert {*get_args(Expression)} == {*logical.EXPRESSION_KINDS.values()}


ALL_KINDS = [
    *logical.PLAN_KINDS.values(),
    *physical.OPERATOR_KINDS.values(),
    *EDGE_KINDS.values(),
    *logical.EXPRESSION_KINDS.values(),
]


@pytest.mark.parametrize("made", ALL_KINDS, ids=lambda made: f"{made.__module__}.{made.__name__}")
def test_every_kind_with_every_member_of_its_enums(made: type) -> None:
    for round_ in range(6):  # no enum has more members
        value = sample(made, round_)
        if isinstance(value, Plan):
            data = logical.plan_data(value)
            assert logical.plan_of(carried(data)) == value
        elif isinstance(value, PhysicalPlan):
            outputs = Outputs((value,))
            names = tuple(f"signature {number}" for number, _ in enumerate(nodes_of(outputs)))
            fragment = Fragment(0, 0, outputs, (), bool(round_ % 2), names)
            data = fragments_data((fragment,))
            assert fragments_of_data(carried(data)) == (fragment,)
        else:
            plan = Filter(sample(Plan, 0), value)
            data = logical.plan_data(plan)
            back = logical.plan_of(carried(data))
            assert repr(back) == repr(plan)  # with what the comparison leaves out
        assert all(member in json.dumps(data) for member in members_of(made, round_))


def sample(annotation: Any, round_: int) -> Any:
    """A value of a class, with the enum members of a round."""
    if annotation is Plan:
        return Source("S", "S", (), RAW_TIME)
    if annotation is PhysicalPlan:
        return OwnSource("S", (), ordered=True)
    if annotation == Expression:
        return Literal(round_, types.BIGINT)
    plain = {int: 1, str: "x", bool: bool(round_ % 2), pa.DataType: types.INT, object: "value"}
    if annotation in plain:
        return plain[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        members = list(annotation)
        return members[round_ % len(members)]
    if get_origin(annotation) is tuple:
        parts = [part for part in get_args(annotation) if part is not Ellipsis]
        return tuple(sample(part, round_) for part in parts)
    if not isinstance(annotation, type):  # something or None
        return sample(_something(annotation), round_) if round_ % 2 else None
    hints = get_type_hints(annotation)
    values = {f.name: sample(hints[f.name], round_) for f in fields(annotation)}
    if annotation is MultiJoin:
        values["orders"] = ((0,),)
    return annotation(**values)


def _something(annotation: Any) -> Any:
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return parts[0] if len(parts) == 1 else Expression


def members_of(made: type, round_: int) -> list[str]:
    hints = get_type_hints(made)
    enums = (hint for hint in map(hints.get, (f.name for f in fields(made))) if _is_enum(hint))
    return [sample(enum, round_).value for enum in enums]


def _is_enum(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Enum)


def classes_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and (is_dataclass(annotation) or issubclass(annotation, Enum)):
        yield annotation
    for part in get_args(annotation):
        yield from classes_in(part)


def test_the_form_is_known(matches_file: Comparison) -> None:
    """The words of documents: a change of these is a change of the format, on purpose."""
    told: list[str] = []
    tables = {
        "logical": logical.PLAN_KINDS,
        "physical": physical.OPERATOR_KINDS | EDGE_KINDS,
        "expressions": logical.EXPRESSION_KINDS,
        "fragments": {"fragment": Fragment},
    }
    found: set[type] = set()
    for title, kinds in tables.items():
        told.append(f"{title}:")
        for kind, made in sorted(kinds.items()):
            told.append(f"  {kind}: {_properties(made)}")
            found |= _reached(made, {*()})
    members = {made for kinds in tables.values() for made in kinds.values()}
    parts = [made for made in found - members if not issubclass(made, Plan | PhysicalPlan)]
    lines = [
        ", ".join(member.value for member in made) if issubclass(made, Enum) else _properties(made)
        for made in parts
    ]
    told += ["parts and enums:", *(f"  {line}" for line in sorted(lines))]
    matches_file(Path(__file__).with_name("plan_form.txt"), "\n".join(told))


def _properties(made: type) -> str:
    return (
        ", ".join(f"{f.name}{'' if f.default is MISSING else '?'}" for f in fields(made))
        or "nothing"
    )


def _reached(made: type, known: set[type]) -> set[type]:
    if made in known or issubclass(made, Enum):
        return known | {made}
    known = known | {made}
    for annotation in get_type_hints(made).values():
        for part in classes_in(annotation):
            if is_dataclass(part) or issubclass(part, Enum):
                known = _reached(part, known)
    return known


# --- types and values -----------------------------------------------------------------------------

TYPES = [
    types.NULL, types.BOOLEAN, types.INT, types.BIGINT, types.REAL, types.DOUBLE, types.STRING,
    types.BINARY, types.DATE, types.TIMESTAMP, types.INTERVAL, types.decimal_type(38, 18),
    pa.list_(types.INT), pa.list_(pa.list_(types.decimal_type(3, 0))),
    pa.struct([("a b", types.INT), ("c", pa.list_(types.STRING)), ("", pa.struct([]))]),
]  # fmt: skip
VALUES: list[object] = [
    None, True, 0, -(2**63), 10**30, "", "é\ud800\n", 0.1, -0.0, 1e300, NAN, float("inf"),
    float("-inf"), Decimal("1.50"), Decimal("-0.00"), Decimal("1E-18"), b"", b"\x00\xff", (),
    (1, (None, "x"), b"y"),
]  # fmt: skip


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_types(type: pa.DataType) -> None:
    assert type_of(carried(type_data(type))) == type


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values(value: object) -> None:
    back = value_of(carried(value_data(value)))
    assert back is value if value is NAN else (back, type(back)) == (value, type(value))
    assert str(back) == str(value)  # the scale of decimals, the sign of zero


def test_a_secret_stays_one() -> None:
    back = value_of(carried(value_data(ms.secret("hunter2"))))
    assert back == "hunter2"
    assert repr(back) == "secret('***')"


def test_nothing_but_plain_values() -> None:
    for value in (object(), {1}, {"a": 1}, [1], 1j):
        with pytest.raises(TypeError, match="not a plain value"):
            value_data(value)


# --- what cannot be read --------------------------------------------------------------------------


def a_plan() -> dict[str, Any]:
    session = ms.Session()
    session.sql("CREATE STREAM S(a INT, t BIGINT) SOURCE none() ORDERED BY t")
    return logical.plan_data(session.sql("SELECT a FROM S [RANGE 10] WHERE a > 1.5").plan)


def node(data: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(each for each in data["nodes"] if each["is"] == kind)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d.update(version=2), "its plans have format 2, this version reads format 1"),
        (lambda d: d.pop("nodes"), "it is not a plan"),
        (lambda d: node(d, "filter").update({"is": "sieve"}), 'the unknown kind "sieve"'),
        (lambda d: node(d, "filter").pop("is"), "without a kind"),
        (lambda d: node(d, "filter").update(input=7), "refers to a part 7"),
        (lambda d: node(d, "filter").update(input=-1), "refers to a part -1"),
        (lambda d: node(d, "filter").pop("predicate"), 'lacks the property "predicate"'),
        (lambda d: node(d, "filter").update(speed=1), 'the unknown property "speed"'),
        (lambda d: node(d, "filter")["predicate"].update({"is": "filter"}), 'kind "filter"'),
        (lambda d: node(d, "source").update(stream=1), "1 instead of a value of type str"),
        (lambda d: node(d, "source").update(arrival=1), "1 instead of a value of type bool"),
        (lambda d: node(d, "source").update(lifetime="long"), "the unknown value 'long'"),
        (lambda d: node(d, "source").update(columns={}), "instead of a list"),
        (lambda d: node(d, "time window").update(granule=7), "that do not go together"),
        (lambda d: node(d, "source")["time"].update(type="moment"), "unknown type 'moment'"),
    ],
)
def test_what_cannot_be_read(change: Any, why: str) -> None:
    data = carried(a_plan())
    change(data)
    with pytest.raises(StructureError) as raised:
        logical.plan_of(data)
    assert why in str(raised.value)


def test_a_property_that_came_later_has_its_default() -> None:
    data = carried(a_plan())
    del node(data, "source")["relation"]
    assert logical.plan_of(data) == logical.plan_of(a_plan())


def test_a_class_without_a_kind_is_not_written() -> None:
    class Sieve(Filter):
        pass

    plan = logical.plan_of(a_plan())
    with pytest.raises(TypeError, match="Sieve has no kind"):
        logical.plan_data(Sieve(plan, Literal(True, types.BOOLEAN)))


def test_reading_needs_no_parser() -> None:
    code = (
        "import sys, json; from millstream.fragments.plan_data import fragments_of_data; "
        "from millstream.logical.plan_data import plan_of; plan_of(json.load(sys.stdin)); "
        "assert 'sqlglot' not in sys.modules, 'a parser was loaded'"
    )
    subprocess.run([sys.executable, "-c", code], input=json.dumps(a_plan()).encode(), check=True)
