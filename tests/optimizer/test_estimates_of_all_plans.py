"""Whatever is asked, estimates are numbers that can be: every text of the oracle, random plans."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from random import Random

import pytest

from millstream.optimizer.choice import Approach, Choices, choose
from millstream.optimizer.cost import Estimates, estimate
from millstream.optimizer.cost.text import costs_json, costs_text
from millstream.optimizer.statistics import ColumnStatistics, Statistics, StreamStatistics
from millstream.physical.operators.source import Source
from millstream.physical.signature import Signatures
from oracle.agreement import Bench
from oracle.judged_streams import DERIVED, STREAMS
from oracle.query_texts import TEXTS
from oracle.random_streams import Tape
from runtime.random_plans import case_of


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(STREAMS, DERIVED)


def numbers(estimates: Estimates) -> Iterator[float]:
    for _, own in estimates:
        yield from (own.output.elements, own.output.length, own.rows, own.bytes, own.cost)
        yield from own.work.values()


def check(estimates: Estimates) -> None:
    assert all(math.isfinite(number) and number >= 0 for number in numbers(estimates))
    for _, own in estimates:
        assert 0 <= own.output.retracted <= 1 + 1e-9
        assert own.output.ahead >= 0
    assert costs_text(estimates)
    assert costs_json(estimates, Signatures())


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
def test_texts(bench: Bench, text: str) -> None:
    query = bench.query(text)
    known = query.estimates().statistics
    for approach in Approach:
        plan = choose(query.plan, query.emit, Choices(approach=approach))
        check(estimate(plan, known))


@pytest.mark.parametrize("seed", range(400))
def test_random_plans(seed: int) -> None:
    logical, _ = case_of(Tape(Random(seed).randbytes(300)))
    plan = choose(logical, "CHANGES" if seed % 2 else "FINAL")
    streams = {
        node.stream: StreamStatistics(
            10.0 ** Random(seed).randint(-3, 6),
            {name: ColumnStatistics(distinct=3.0) for name in ("k", "v")},
        )
        for node, _ in estimate(plan, Statistics())
        if isinstance(node, Source)
    }
    began = time.process_time()
    check(estimate(plan, Statistics(streams)))
    assert time.process_time() - began < 2
