"""Physical plans as text and as JSON: whole texts, for every operator."""

from __future__ import annotations

import json
import re
from textwrap import dedent

import pytest

import millstream as ms
from millstream.logical.plan import Field
from millstream.model import types
from millstream.model.time import TIMESTAMP_TIME
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.optimizer.multi_way import multi_way
from millstream.papers.multi_way_heuristics import as_they_stand
from millstream.physical.joins.areas.area import Probing
from millstream.physical.joins.areas.forms import AreaChoice
from millstream.physical.operator import Pattern, PhysicalPlan
from millstream.physical.operators.coalesce import Coalesce
from millstream.physical.operators.cut import Cut
from millstream.physical.operators.join import Join
from millstream.physical.operators.multi_join import MultiJoin
from millstream.physical.signature import Signatures
from millstream.physical.text import physical_json, physical_text
from physical.feeding import given


@pytest.fixture
def session() -> ms.Session:
    session = ms.Session()
    session.sql(
        "CREATE STREAM s (k INT, x DOUBLE, t BIGINT) SOURCE f() ORDERED BY t;"
        "CREATE STREAM r (k INT, y DOUBLE, t BIGINT) SOURCE f() ORDERED BY t;"
        "CREATE STREAM q (k INT, z DOUBLE, t BIGINT) SOURCE f() ORDERED BY t"
    )
    return session


def text_of(session: ms.Session, statement: str, emit: str = "FINAL") -> str:
    return physical_text(choose(session.sql(statement).plan, emit))


def check(actual: str, expected: str) -> None:
    assert actual == dedent(expected).strip("\n")


# --- operators ------------------------------------------------------------------------------------


def test_stateless_operators(session: ms.Session) -> None:
    check(
        text_of(session, "SELECT k, x + 1 AS more FROM s WINDOW(RANGE 5 SLIDE 5) WHERE x > 2.5E0"),
        """
        Map columns=[s.k, s.x + CAST(1 AS DOUBLE) AS more] pattern=WEAKEST emits=[+]
          Filter where=s.x > 2.5E0 pattern=WEAKEST emits=[+]
            TimeWindow range=5 slide=5 pattern=WEAKEST emits=[+]
              Source stream=s pattern=WEAKEST emits=[+]
        """,
    )


def test_joins(session: ms.Session) -> None:
    check(
        text_of(
            session,
            "SELECT a.x, r.y FROM s [RANGE 5] a JOIN r [ROWS 3] ON a.k = r.k AND a.x < r.y",
        ),
        """
        Map columns=[a.x, r.y] pattern=WEAK emits=[+]
          Pointwise function=identity form=intervals final=yes pattern=WEAK emits=[+] state=keyed
            Join keys=[a.k = r.k] where=a.x < r.y pattern=STRICT emits=[+,-] state=[ring, keyed calendar]
              TimeWindow range=5 pattern=WEAKEST emits=[+]
                Source stream=s as=a pattern=WEAKEST emits=[+]
              CountWindow rows=3 order=[r.`$arrival`] pattern=STRICT emits=[+,-] state=queue
                Source stream=r arrival=yes pattern=WEAKEST emits=[+]
        """,  # noqa: E501
    )


@pytest.mark.parametrize("kind", ["left", "right", "full"])
def test_outer_joins(session: ms.Session, kind: str) -> None:
    check(
        text_of(
            session,
            f"SELECT s.x, r.y FROM s [RANGE 5] {kind} JOIN r [RANGE 5] ON s.k <=> r.k",
            "CHANGES",
        ),
        f"""
        Changes pattern=STRICT emits=[+,-] state=agenda
          Map columns=[s.x, r.y] pattern=STRICT emits=[+,-]
            OuterJoin kind={kind} keys=[s.k <=> r.k] pattern=STRICT emits=[+,-] state=[areas, gate]
              TimeWindow range=5 pattern=WEAKEST emits=[+]
                Source stream=s pattern=WEAKEST emits=[+]
              TimeWindow range=5 pattern=WEAKEST emits=[+]
                Source stream=r pattern=WEAKEST emits=[+]
        """,
    )


def test_aggregates_and_semi_joins(session: ms.Session) -> None:
    check(
        text_of(
            session,
            "SELECT k, SUM(x) AS total FROM s [RANGE 5] WHERE k IN (SELECT k FROM r [RANGE 5]) "
            "GROUP BY k ORDER BY total DESC LIMIT 3",
        ),
        """
        Pointwise function=identity form=intervals final=yes pattern=WEAK emits=[+] state=keyed
          TopN limit=3 order=[total DESC, k] pattern=STRICT emits=[+,-] state=sorted by group
            Map columns=[s.k, sum AS total] pattern=STRICT emits=[+,-]
              Aggregate by=[s.k] compute=[sum(s.x) AS sum] pattern=STRICT emits=[+,-] state=[accumulators, calendar]
                SemiJoin kind=semi keys=[s.k = subquery.k] pattern=STRICT emits=[+,-] state=gate
                  TimeWindow range=5 pattern=WEAKEST emits=[+]
                    Source stream=s pattern=WEAKEST emits=[+]
                  Map columns=[r.k AS subquery.k] pattern=WEAKEST emits=[+]
                    TimeWindow range=5 pattern=WEAKEST emits=[+]
                      Source stream=r pattern=WEAKEST emits=[+]
        """,  # noqa: E501
    )


def test_lookups(session: ms.Session) -> None:
    check(
        text_of(
            session, "SELECT r.k, s.x FROM r [PARTITION BY k ROWS 1] RIGHT JOIN s ON s.k = r.k"
        ),
        """
        Map columns=[r.k, s.x] pattern=WEAKEST emits=[+]
          Map columns=[r.k AS r.k, r.y AS r.y, r.t AS r.t, r.`$arrival` AS r.`$arrival`, s.k AS s.k, s.x AS s.x, s.t AS s.t] pattern=WEAKEST emits=[+]
            LookupJoin kind=left keys=[s.k = r.k] pattern=WEAKEST emits=[+] state=versions
              Source stream=s pattern=WEAKEST emits=[+]
              CountWindow by=[r.k] rows=1 order=[r.`$arrival`] pattern=STRICT emits=[+,-] state=queues by key
                Source stream=r arrival=yes pattern=WEAKEST emits=[+]
        """,  # noqa: E501
    )


def test_set_operations(session: ms.Session) -> None:
    check(
        text_of(
            session,
            "(SELECT k FROM s [RANGE 5] UNION SELECT k FROM r [RANGE 5]) "
            "EXCEPT ALL SELECT k FROM DSTREAM(q)",
        ),
        """
        Pointwise function=difference once=[left] form=intervals final=yes pattern=WEAK emits=[+] state=keyed
          Union pattern=WEAK emits=[+]
            Map columns=[s.k] pattern=WEAKEST emits=[+]
              TimeWindow range=5 pattern=WEAKEST emits=[+]
                Source stream=s pattern=WEAKEST emits=[+]
            Map columns=[r.k] pattern=WEAKEST emits=[+]
              TimeWindow range=5 pattern=WEAKEST emits=[+]
                Source stream=r pattern=WEAKEST emits=[+]
          Map columns=[q_2.k] pattern=WEAKEST emits=[+]
            Map columns=[q.k AS q_2.k, q.z AS q_2.z, q.t AS q_2.t] pattern=WEAKEST emits=[+]
              Deltas of=what went pattern=WEAKEST emits=[+] state=agenda
                Source stream=q pattern=WEAKEST emits=[+]
        """,  # noqa: E501
    )


def test_distinct(session: ms.Session) -> None:
    check(
        text_of(session, "SELECT DISTINCT k FROM s [RANGE 5]"),
        """
        Distinct pattern=WEAK emits=[+] state=largest end
          Map columns=[s.k] pattern=WEAKEST emits=[+]
            TimeWindow range=5 pattern=WEAKEST emits=[+]
              Source stream=s pattern=WEAKEST emits=[+]
        """,
    )


def test_windows_over_granules(session: ms.Session) -> None:
    session.sql("CREATE STREAM d AS SELECT k FROM s [RANGE 5]")
    check(
        text_of(
            session,
            "SELECT k FROM d WINDOW(PARTITION BY k ROWS 2 SLIDE 2) GRANULARITY(4)",
        ),
        """
        Map columns=[d.k] pattern=WEAK emits=[+]
          CountWindow by=[d.k] rows=2 order=[s.`$arrival`] slide=2 granule=4 form=intervals final=yes pattern=WEAK emits=[+] state=queues by key
            Split granule=4 pattern=WEAKEST emits=[+] state=keyed
              Granularity granule=4 pattern=WEAKEST emits=[+]
                Map columns=[s.k AS d.k, s.`$arrival` AS s.`$arrival`] pattern=WEAKEST emits=[+]
                  TimeWindow range=5 pattern=WEAKEST emits=[+]
                    Source stream=s arrival=yes pattern=WEAKEST emits=[+]
        """,  # noqa: E501
    )


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
def test_an_anti_join_as_intervals(session: ms.Session) -> None:
    plan = session.sql(
        "SELECT k FROM s [RANGE UNBOUNDED] WHERE NOT EXISTS (SELECT 1 FROM r [RANGE 5] WHERE y > x)"
    ).plan
    check(
        physical_text(choose(plan, "ELEMENTS", Choices(approach=Approach.INTERVALS))),
        """
        Map columns=[s.k] pattern=WEAK emits=[+]
          SemiJoin kind=anti where=r.y > s.x form=intervals pattern=WEAK emits=[+] state=[gate, areas]
            TimeWindow range=UNBOUNDED pattern=MONOTONIC emits=[+]
              Source stream=s pattern=WEAKEST emits=[+]
            TimeWindow range=5 pattern=WEAKEST emits=[+]
              Source stream=r pattern=WEAKEST emits=[+]
        """,  # noqa: E501
    )


def test_a_join_of_many(session: ms.Session) -> None:
    plan = session.sql(
        "SELECT s.x FROM s [RANGE 5], r [RANGE 5], q [RANGE 5] "
        "WHERE s.k = r.k AND r.k = q.k AND s.x < q.z AND 1 / y > 2"
    ).plan
    joined = multi_way(choose(plan))
    check(
        physical_text(joined),
        """
        Map columns=[s.x] pattern=WEAK emits=[+]
          Filter where=CAST(1 AS DOUBLE) / r.y > CAST(2 AS DOUBLE) pattern=WEAK emits=[+]
            MultiJoin keys=[s.k = r.k, r.k = q.k] where=[s.x < q.z] pattern=WEAK emits=[+] state=[ring, ring, ring]
              TimeWindow range=5 pattern=WEAKEST emits=[+]
                Source stream=s pattern=WEAKEST emits=[+]
              TimeWindow range=5 pattern=WEAKEST emits=[+]
                Source stream=r pattern=WEAKEST emits=[+]
              TimeWindow range=5 pattern=WEAKEST emits=[+]
                Source stream=q pattern=WEAKEST emits=[+]
        """,  # noqa: E501
    )


# --- choices that are not the usual ones ----------------------------------------------------------

SECOND = 1_000_000


def source(name: str, pattern: Pattern = Pattern.WEAK) -> PhysicalPlan:
    return given(name, (Field("k", types.INT, name),), pattern)


def test_orders_probing_and_lateness() -> None:
    areas = tuple(AreaChoice(probing, lazy=SECOND) for probing in (*Probing, Probing.HASH))
    sources = tuple(source(name) for name in "abc")
    check(
        physical_text(
            MultiJoin(
                sources, (), orders=as_they_stand((2, 0, 1)), areas=areas, interval=60 * SECOND
            ),
            TIMESTAMP_TIME,
        ),
        """
        MultiJoin orders=[3 1 2, 3 1 2, 3 1 2] interval=1 MINUTE probing=[hash, loop, hash] lazy=[1 SECOND, 1 SECOND, 1 SECOND] pattern=WEAK emits=[+] state=[calendar, calendar, calendar]
          Given stream=a pattern=WEAK emits=[+]
          Given stream=b pattern=WEAK emits=[+]
          Given stream=c pattern=WEAK emits=[+]
        """,  # noqa: E501
    )


def test_what_is_shared_is_told_once() -> None:
    once = Coalesce(Cut(source("a"), SECOND), 60 * SECOND)
    check(
        physical_text(Join(Join(once, once), Join(once.input, source("b"))), TIMESTAMP_TIME),
        """
        Join pattern=WEAK emits=[+] state=[calendar, calendar]
          Join pattern=WEAK emits=[+] state=[calendar, calendar]
            Coalesce longest=1 MINUTE pattern=WEAK emits=[+] state=ring shared=#1
              Cut length=1 SECOND pattern=WEAK emits=[+] state=calendar shared=#2
                Given stream=a pattern=WEAK emits=[+]
            Shared #1
          Join pattern=WEAK emits=[+] state=[calendar, calendar]
            Shared #2
            Given stream=b pattern=WEAK emits=[+]
        """,
    )


def test_json() -> None:
    once = Cut(source("a"), 5)
    join, signatures = Join(once, once), Signatures()
    assert physical_json(join, signatures) == {
        "id": signatures[join],
        "operator": "Join",
        "properties": {},
        "pattern": "WEAK",
        "emits": ["+"],
        "state": ["calendar", "calendar"],
        "columns": [{"name": "k", "type": "INT"}, {"name": "k", "type": "INT"}],
        "inputs": [
            {
                "id": signatures[once],
                "operator": "Cut",
                "shared": "#1",
                "properties": {"length": "5"},
                "pattern": "WEAK",
                "emits": ["+"],
                "state": ["calendar"],
                "columns": [{"name": "k", "type": "INT"}],
                "inputs": [
                    {
                        "id": signatures[once.input],
                        "operator": "Given",
                        "properties": {"stream": "a"},
                        "pattern": "WEAK",
                        "emits": ["+"],
                        "state": [],
                        "columns": [{"name": "k", "type": "INT"}],
                        "inputs": [],
                    }
                ],
            },
            {"id": signatures[once], "operator": "Shared", "shared": "#1"},
        ],
    }


# --- explain --------------------------------------------------------------------------------------


def test_explain_shows_both_plans(session: ms.Session) -> None:
    query = session.sql("SELECT k FROM s [RANGE 5]")
    check(
        re.sub(r"\bid=[0-9a-f]{8}$", "id=ID", query.explain(physical=True), flags=re.MULTILINE),
        """
        Map columns=[s.k]
          TimeWindow range=5
            Source stream=s

        Map columns=[s.k] pattern=WEAKEST emits=[+] id=ID
          TimeWindow range=5 pattern=WEAKEST emits=[+] id=ID
            Source stream=s pattern=WEAKEST emits=[+] id=ID
        """,
    )


def test_explain_both_as_json(session: ms.Session) -> None:
    query = session.sql("SELECT k FROM s [RANGE 5]")
    both = json.loads(query.explain(format="json", physical=True))
    assert both["logical"] == json.loads(query.explain(format="json"))
    assert both["physical"] == physical_json(query.physical_plan, Signatures())
