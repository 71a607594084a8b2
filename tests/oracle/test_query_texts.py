"""Every query text of `queries/` has the judge's answer at every instant."""

from __future__ import annotations

from decimal import Decimal

import pytest

from oracle.agreement import Bench, answer_of, instants, same_rows
from oracle.judged_streams import DERIVED, STREAMS
from oracle.query_texts import TEXTS


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(STREAMS, DERIVED)


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
def test_text(bench: Bench, text: str) -> None:
    bench.check_definition(text)
    bench.check(text)


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS)
def test_text_and_plan_can_be_read_back(bench: Bench, text: str) -> None:
    bench.check_printing(text)


def test_the_judge_can_disagree(bench: Bench) -> None:
    """The answer to one query is not taken for that of another."""
    query = bench.query("SELECT item, price FROM Bid WINDOW(RANGE 5)")
    pieces = answer_of(query)
    for other in ("RANGE 4", "RANGE 5 SLIDE 2", "ROWS 5"):
        judged = bench.judge.judged(f"SELECT item, price FROM Bid WINDOW({other})")
        differences = [
            t
            for t in instants(judged, pieces)
            if not same_rows([r for r, start, end in pieces if start <= t < end], judged.answer(t))
        ]
        assert differences


def test_values_that_count_as_the_same() -> None:
    nan = float("nan")
    assert same_rows([(1, nan), (1, 0.1 + 0.2)], [(1, 0.3), (1, nan)])
    assert same_rows([((1, None),)], [((1, None),)])
    assert not same_rows([(1,), (1,)], [(1,)])
    assert not same_rows([(1,), (1,), (2,)], [(1,), (2,), (2,)])
    assert not same_rows([(None,)], [(0,)])
    assert not same_rows([(True,)], [(1,)])
    assert not same_rows([(Decimal("0.10"),)], [(Decimal("0.11"),)])
    assert not same_rows([("1",)], [(1.0,)])


def test_there_are_many_texts_and_no_text_twice() -> None:
    assert len(TEXTS) == len(set(TEXTS))
    assert len(TEXTS) >= 200
