"""Queries over generated rows, checked under random schedules."""

from __future__ import annotations

import warnings
from random import Random

import pyarrow as pa

import millstream as ms
from effort import examples
from oracle.random_streams import Tape
from runtime.schedule_agreement import Expected, Trial

EXAMPLES = examples(2)
DERIVED = (
    "CREATE STREAM D1 AS SELECT k, COUNT(*) AS v FROM S WINDOW(RANGE 5) GROUP BY k",
    "CREATE STREAM D2 AS SELECT * FROM ISTREAM(SELECT DISTINCT k, v FROM S WINDOW(RANGE 4))",
    """CREATE STREAM D3 AS SELECT a.k, b.v
    FROM S WINDOW(RANGE 3) a LEFT JOIN R WINDOW(ROWS 2) b ON a.k = b.k""",
    "CREATE STREAM D4 AS SELECT k, v FROM S WINDOW(PARTITION BY k ROWS 2 SLIDE 2)",
)


def integers(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.int64())


def rows(random: Random, count: int, first: int, span: int) -> pa.Table:
    times = sorted(first + random.randrange(span) for _ in range(count))
    return pa.table(
        {
            "k": integers([random.choice([1, 2, 3, None]) for _ in times]),
            "v": integers([random.choice([1, 2, 2, 5, None]) for _ in times]),
            "t": integers([*times]),
        }
    )


def intervals(random: Random, count: int, first: int) -> pa.Table:
    starts = sorted(first + random.randrange(20) for _ in range(count))
    return pa.table(
        {
            "k": integers([random.choice([1, 2, None]) for _ in starts]),
            "v": integers([random.choice([1, 2, 3]) for _ in starts]),
            "a": integers([*starts]),
            "b": integers([random.choice([a + 1, a + 4, a + 9, None]) for a in starts]),
        }
    )


def session_of(seed: int) -> ms.Session:
    random = Random(seed)
    first = random.choice([-20, -7, 0, 1_000, 2**62 - 60])
    session = ms.Session(engine="local")
    session.stream("S", rows(random, random.choice([12, 20, 5]), first, 25), time="t")
    session.stream("R", rows(random, random.choice([10, 16, 0]), first + 8, 15), time="t")
    session.stream("E", rows(random, 0, 0, 1), time="t")
    session.stream("J", intervals(random, random.choice([8, 2]), first), time=("a", "b"))
    for statement in DERIVED:
        session.sql(statement)
    return session


SESSIONS = [session_of(seed) for seed in range(EXAMPLES)]


def check_under_schedules(text: str) -> None:
    random = Random(text)
    for session in SESSIONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = session.sql(text).plan
        known = session._origins.inputs(plan)
        inputs = {name: records.elements() for name, records in known.items()}
        expected = Expected(plan, inputs)
        for approach in (0, 2, 3):
            expected.check(Trial(Tape(bytes([approach]) + random.randbytes(300))))
