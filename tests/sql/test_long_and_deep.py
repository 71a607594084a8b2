"""Long chains of AND and OR work; what is nested too deeply is refused with its depth."""

from __future__ import annotations

import pytest

import millstream as ms


@pytest.fixture
def session() -> ms.Session:
    session = ms.Session(engine="local")
    session.stream("S", [{"t": t, "a": t % 3, "b": str(t)} for t in range(6)], time="t")
    return session


def chain(operator: str, operand: str, count: int) -> str:
    return f" {operator} ".join(operand.format(number) for number in range(count))


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (chain("AND", "a <> {}", 400), 0),
        (chain("OR", "a = {}", 400), 6),
        (chain("AND", "(a = 1 OR a <> {})", 250), 2),
    ],
)
def test_conditions_of_any_length(session: ms.Session, condition: str, rows: int) -> None:
    query = session.sql(f"SELECT a, t FROM S WHERE {condition}")
    assert query.run().num_rows == rows
    again = session.sql(query.text)  # it prints, and reads back
    assert again.plan == query.plan


def test_conditions_of_any_length_in_other_places(session: ms.Session) -> None:
    on = chain("AND", "x.a <> y.a + {}", 250)
    window = "S WINDOW(ROWS 2)"
    joined = session.sql(f"SELECT x.t FROM {window} x JOIN {window} y ON {on} AND x.a = -1")
    assert joined.run().num_rows == 0
    having = chain("AND", "COUNT(*) <> {}", 250)
    grouped = session.sql(f"SELECT COUNT(*) AS n FROM {window} GROUP BY a HAVING {having}")
    assert grouped.run().num_rows == 0


def test_ten_thousand_conditions_are_bound(session: ms.Session) -> None:
    assert session.sql(f"SELECT a FROM S WHERE {chain('AND', 'a <> {}', 10_000)}").plan


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            f"SELECT {chain('+', 'a', 200)} AS x FROM S",
            "nested 200 levels deep; the maximum is 150",
        ),
        (f"SELECT {chain('+', 'a', 5000)} AS x FROM S", "nested too deeply"),
        (f"SELECT {chain('||', 'b', 200)} AS x FROM S", "nested 200 levels deep"),
        (f"SELECT {'- ' * 200} a AS x FROM S", "nested 201 levels deep"),
        (f"SELECT a FROM S WHERE {'(' * 2000}a = 1{')' * 2000}", "nested too deeply"),
        (f"SELECT {'abs(' * 500}a{')' * 500} AS x FROM S", "nested too deeply"),
        (f"SELECT a FROM {'(SELECT a FROM ' * 90}S{')' * 90}", "nested too deeply"),
        (chain("UNION ALL", "SELECT a FROM S", 500), "more than 150 set operations"),
    ],
)
def test_what_is_nested_too_deeply(session: ms.Session, statement: str, message: str) -> None:
    with pytest.raises(ms.MillstreamError, match=message):
        session.sql(statement)
