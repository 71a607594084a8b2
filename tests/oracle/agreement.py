"""Whether the system and the judge give the same answer at every instant."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

import millstream as ms
from millstream.logical.text import plan_text
from millstream.model.durations import Duration
from millstream.sql.parser import parse
from millstream.sql.plan_text import parse_plan
from millstream.sql.statements import clauses_of
from oracle.judge import Judge, JudgedQuery, Row, plain
from oracle.judged_streams import JudgedStream, session_of
from oracle.judged_windows import duration

FOR_EVER = 253_402_300_799_999_999  # INFINITY as a TIMESTAMP; as a BIGINT it is larger still
EVERY_INSTANT = 2_000  # as many instants are all tried


class Bench:
    """Streams that the local engine, the reference and the judge share."""

    def __init__(self, streams: Iterable[JudgedStream], derived: Iterable[str] = ()) -> None:
        streams, derived = list(streams), list(derived)
        self.session = session_of(streams, derived)
        self.definition = session_of(streams, derived, engine="reference")
        self.judge = Judge(streams, derived)

    def query(self, text: str, session: ms.Session | None = None) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (session or self.session).sql(text)

    def check_definition(self, text: str) -> None:
        """Require that the local engine gives the reference's table, to the last row and bit."""
        ours, defined = self.query(text), self.query(text, self.definition)
        assert repr(ours.run().to_pylist()) == repr(defined.run().to_pylist()), text

    def check_printing(self, text: str) -> None:
        """Require that the statement and its plan can be printed and read back."""
        (statement,) = parse(text)
        printed = str(statement)
        assert parse(printed) == [statement], printed
        plan = self.query(text).plan
        assert parse_plan(plan_text(plan), self.session.catalog) == plan, plan_text(plan)

    def check_changes(self, text: str) -> None:
        """Require that the changes, summed up, are the answer."""
        final = answer_of(self.query(text))
        table = self.query(f"{text} EMIT CHANGES").run()
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        changes = [(row[:-2], row[-2], row[-1]) for row in (tuple(map(plain, r)) for r in rows)]
        for t in sorted({at for _, at, _ in changes} | {start for _, start, _ in final}):
            summed: Counter[str] = Counter()
            for row, at, change in changes:
                if at <= t:
                    summed[repr(row)] += change
            there = Counter(repr(row) for row, start, end in final if start <= t < end)
            assert {row: n for row, n in summed.items() if n} == dict(there), (text, t)

    def check(self, text: str) -> None:
        """Require that the answer to `text` is the judge's at every instant."""
        query = self.query(text)
        judged = self.judge.judged(text)
        pieces = answer_of(query)
        assert query.errors == []
        for t in instants(judged, pieces):
            ours = [row for row, start, end in pieces if start <= t < end]
            theirs = judged.answer(t)
            if not same_rows(ours, theirs):
                raise AssertionError(disagreement(text, t, ours, theirs, judged))


Piece = tuple[Row, int, int]


def answer_of(query: Any) -> list[Piece]:
    """The whole answer as rows with the time from which and to which they hold."""
    table = query.run()
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    plain_rows = [tuple(map(plain, row)) for row in rows]
    return [(row[:-2], row[-2], row[-1] if row[-1] < FOR_EVER else 2**63) for row in plain_rows]


def instants(judged: JudgedQuery, pieces: Sequence[Piece]) -> list[int]:
    """Every instant from before the beginning until nothing changes any more; on a fine clock
    those beside which something can change."""
    intervals = [i for stream in judged.sources.values() for i in stream.intervals]
    starts = [start for start, _ in intervals]
    ends = [end for _, end in intervals if end is not None]
    changes = {t for _, start, end in pieces for t in (start, end) if t < FOR_EVER}
    if not starts:
        return [0]
    lengths = sorted(_durations(judged.tree, judged))
    last = max([*starts, *ends, *changes]) + sum(lengths)
    if last - min(starts) <= EVERY_INSTANT:
        return list(range(min(starts) - 2, last + 3))
    moments = changes | {*starts, *ends}
    moments |= {t + length for t in moments for length in lengths}
    moments |= {t // g * g + step for t in moments for g in lengths for step in (0, g, g - 1)}
    return sorted({t + near for t in moments for near in (-1, 0, 1)})


def _durations(tree: exp.Expression, judged: JudgedQuery) -> set[int]:
    """The lengths of windows, slides and granules in a query and the derived streams it reads."""
    found: set[int] = set()
    for node in tree.walk():
        clauses = clauses_of(node)
        parts: list[Any] = []
        if clauses.window is not None:
            parts += [clauses.window.size, clauses.window.slide]
        if clauses.granularity is not None:
            parts.append(clauses.granularity.finest)
        found |= {duration(part) for part in parts if isinstance(part, Duration)}
        if isinstance(node, exp.Table) and node.name.lower() in judged.judge.derived:
            found |= _durations(judged.judge.derived[node.name.lower()], judged)
    return found


# --- equality -------------------------------------------------------------------------------------


def same_rows(ours: Sequence[Row], theirs: Sequence[Row]) -> bool:
    """Equal as multisets; doubles within a relative 1e-9."""
    if len(ours) != len(theirs):
        return False
    rest = list(theirs)
    for row in ours:
        index = next((i for i, other in enumerate(rest) if same_row(row, other)), None)
        if index is None:
            return False
        del rest[index]
    return True


def same_row(ours: Row, theirs: Row) -> bool:
    return len(ours) == len(theirs) and all(map(same_value, ours, theirs))


def same_value(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, tuple) and isinstance(b, tuple):
        return same_row(a, b)
    if isinstance(a, float) or isinstance(b, float):
        return _same_double(a, b)
    return bool(a == b)


def _same_double(a: Any, b: Any) -> bool:
    if not all(isinstance(value, int | float | Decimal) for value in (a, b)):
        return False
    rounding = max(map(_half_unit, (a, b)))
    a, b = float(a), float(b)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9 + rounding)


def _half_unit(value: Any) -> float:
    """By how much rounding may have changed a quotient of decimals, which is a DOUBLE there."""
    if not isinstance(value, Decimal):
        return 0.0
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return 0.5 * 10.0**exponent if exponent <= -6 else 0.0


def disagreement(
    text: str, t: int, ours: Sequence[Row], theirs: Sequence[Row], judged: JudgedQuery
) -> str:
    def listed(rows: Sequence[Row]) -> str:
        return "\n".join(f"    {row}" for row in sorted(rows, key=repr)) or "    nothing"

    sql = judged.template.sql(t)
    return (
        f"at {t} the answers differ\n  query: {text}\n  ours:\n{listed(ours)}\n"
        f"  the judge's:\n{listed(theirs)}\n  the judge ran: {sql}"
    )
