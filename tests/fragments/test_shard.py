"""A shard that was made anew goes on as the one that it was made from."""

from __future__ import annotations

import millstream as ms
from millstream.fragments.cutting import fragments_of
from millstream.fragments.edges import Fragment, Received
from millstream.fragments.payload import encoded
from millstream.fragments.progress import SourceProgress
from millstream.fragments.shard import Shard, ShardStep
from millstream.model.codec import packed, unpacked
from millstream.model.time import INFINITY
from millstream.model.values import to_arrow
from millstream.physical.batch import NEVER, Batch
from millstream.physical.operator import Context, PhysicalPlan, plain_rows

COUNTS = """SELECT a.n AS x, b.n AS y FROM (SELECT COUNT(*) AS n FROM A WINDOW(RANGE 5)) a,
(SELECT COUNT(*) AS n FROM B WINDOW(RANGE 5)) b"""


def counts() -> Fragment:
    """The fragment that counts both streams and joins the counts."""
    session = ms.Session(engine="local")
    for name in "AB":
        session.feed(name, {"t": "BIGINT"}, time="t")
    query = session.sql(COUNTS)
    assert isinstance(query, ms.Query)
    return fragments_of(query.physical_plan)[1]


def received(plan: PhysicalPlan) -> list[Received]:
    own = [plan] if isinstance(plan, Received) else []
    return own + [found for child in plan.inputs for found in received(child)]


def step(
    fragment: Fragment,
    starts: tuple[list[int], ...],
    frontiers: tuple[int, ...],
    beginning: int = 1,
) -> ShardStep:
    """Rows of each stream that hold for five instants, and how far each has come."""
    inputs, reached = {}, {}
    for node, own, frontier in zip(received(fragment.plan), starts, frontiers, strict=True):
        reached[node.exchange] = frontier
        if own:
            columns = [to_arrow(own, type) for type in node.types]
            batch = Batch.of(columns, own, [start + 5 for start in own], frontier=frontier)
            inputs[node.exchange] = [encoded(batch)]
    return ShardStep(inputs, reached, SourceProgress(beginning, {}))


def given(shard: Shard, taken: ShardStep) -> list[tuple[object, ...]]:
    """Rows with start and weight, by start, and the frontier."""
    (batch,) = shard.step(taken)
    order = batch.start.argsort(kind="stable")
    rows = plain_rows(batch.columns, [array.type for array in batch.columns], order)
    times = batch.start[order].tolist(), batch.weight[order].tolist()
    return [*zip(rows, *times, strict=True), (batch.frontier,)]


def test_what_is_no_news_stays_none() -> None:
    """B has come to 4 when nobody knows yet when time begins. The first row of A tells, but B has
    not come further: its count of nothing comes with its next news, and not before, also if the
    shard was made anew in between."""
    fragment = counts()
    steps = [
        step(fragment, ([], []), (NEVER, 4), beginning=INFINITY),
        step(fragment, ([1], []), (3, 4)),
        step(fragment, ([], [4]), (7, 7)),
    ]
    kept = Shard(fragment, Context())
    expected = [given(kept, taken) for taken in steps]
    for restart in range(1, len(steps)):
        shard = Shard(fragment, Context())
        for taken in steps[:restart]:
            given(shard, taken)
        anew = Shard(fragment, Context())
        anew.restore(unpacked(packed(shard.save())))
        assert [given(anew, taken) for taken in steps[restart:]] == expected[restart:]
