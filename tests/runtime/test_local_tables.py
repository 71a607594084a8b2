"""Streams and tables of every kind, changed in any way: the answer is that of the definition,
whatever comes first, also where plans are cut into fragments."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import millstream as ms
from fragments.fragment_agreement import check
from millstream.api.tables import TableHandle
from oracle.query_texts import texts
from oracle.random_streams import Tape
from runtime.schedule_agreement import Expected, Trial
from runtime.schedule_checks import EXAMPLES, intervals, rows

TEXTS = list(texts(Path(__file__).parent / "queries" / "tables.sql"))
COLUMNS = {"k": "BIGINT", "v": "BIGINT"}


def change(random: Random, table: TableHandle) -> None:
    """Rows that come, are changed, go and come again, several at an instant."""
    for at in sorted(random.randrange(30) for _ in range(18)):
        there = table.rows()["k"].to_pylist()
        if there and random.random() < 0.3:
            table.delete({"k": random.choice(there)}, at=at)
        else:
            row = {"k": random.choice([1, 2, 3, 4]), "v": random.choice([1, 2, 5, None])}
            table.upsert(row, at=at)


def session_of(seed: int) -> ms.Session:
    random = Random(seed)
    session = ms.Session(engine="local")
    session.stream("S", rows(random, random.choice([20, 12]), 0, 25), time="t")
    session.stream("R", rows(random, random.choice([10, 0]), 5, 15), time="t")
    for name, changes in (("N", "non retroactive"), ("U", "retroactive")):
        change(random, session.table(name, schema=COLUMNS, key="k", changes=changes))
    session.table("C", pa.table({"k": [1, 2, 2, 3], "v": [7, 8, 8, 2]}), changes="constant")
    session.table("V", intervals(random, 8, 0), time=("a", "b"))
    return session


SESSIONS = [session_of(seed) for seed in range(EXAMPLES)]


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
def test_tables_under_schedules(text: str) -> None:
    random = Random(text)
    for session in SESSIONS:
        plan = session.sql(text).plan
        inputs = session._origins.inputs(plan)
        expected = Expected(plan, {name: records.elements() for name, records in inputs.items()})
        for approach in (0, 2, 3):
            expected.check(Trial(Tape(bytes([approach]) + random.randbytes(300))))
        check(expected, Trial(Tape(random.randbytes(400))))
