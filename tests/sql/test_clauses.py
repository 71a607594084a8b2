"""Windows, granularities and durations: what each spelling means."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from millstream.model.durations import Duration, parse_duration
from millstream.model.errors import ParseError
from millstream.model.names import Name, QualifiedName
from millstream.sql.clauses import (
    ClauseReader,
    Clauses,
    GranularityClause,
    Now,
    RowCount,
    Unbounded,
    Window,
)
from millstream.sql.tokens import Cursor, tokenize


def reader(text: str, **parameters: object) -> ClauseReader:
    return ClauseReader(Cursor(tokenize(text), len(text)), parameters)


def window(text: str, **parameters: object) -> Window:
    read = reader(text, **parameters)
    found = read.cql_window() if text.startswith("[") else read.window()
    assert read.cursor.current is None
    return found


def of(amount: int | str, unit: str | None = None) -> Duration:
    return Duration(Fraction(amount), unit)


AUCTION = (Name("auction"),)

WINDOWS = {
    "RANGE 10 MINUTES": Window("RANGE", of(10, "MINUTE")),
    "RANGE 10": Window("RANGE", of(10)),
    "RANGE 1.5 SECONDS": Window("RANGE", of("3/2", "SECOND")),
    "RANGE NOW": Window("RANGE", Now()),
    "NOW": Window("RANGE", Now()),
    "RANGE UNBOUNDED": Window("RANGE", Unbounded()),
    "UNBOUNDED": Window("RANGE", Unbounded()),
    "RANGE 10 MINUTES SLIDE 30 SECONDS": Window("RANGE", of(10, "MINUTE"), of(30, "SECOND")),
    "RANGE 10 SLIDE 5": Window("RANGE", of(10), of(5)),
    "UNBOUNDED SLIDE 5": Window("RANGE", Unbounded(), of(5)),
    "RANGE UNBOUNDED SLIDE 1 DAY": Window("RANGE", Unbounded(), of(1, "DAY")),
    "NOW SLIDE 5": Window("RANGE", Now(), of(5)),
    "ROWS 10": Window("ROWS", RowCount(10)),
    "ROWS 10 SLIDE 2": Window("ROWS", RowCount(10), RowCount(2)),
    "ROWS UNBOUNDED": Window("ROWS", Unbounded()),
    "ROWS UNBOUNDED SLIDE 3": Window("ROWS", Unbounded(), RowCount(3)),
    "PARTITION BY auction ROWS 10": Window("ROWS", RowCount(10), None, AUCTION),
    "PARTITION BY auction ROWS 10 SLIDE 2": Window("ROWS", RowCount(10), RowCount(2), AUCTION),
    "PARTITION BY auction RANGE 5": Window("RANGE", of(5), None, AUCTION),
    "PARTITION BY a, `b c` ROWS 1": Window(
        "ROWS", RowCount(1), None, (Name("a"), Name("b c", quoted=True))
    ),
    "PARTITION BY Bid.auction ROWS 10": Window(
        "ROWS", RowCount(10), None, (QualifiedName("auction", table=Name("Bid")),)
    ),
    "RANGE MIN 5 MINUTES, MAX 10 MINUTES": Window(
        "RANGE", of(10, "MINUTE"), minimum=of(5, "MINUTE")
    ),
    "ROWS MIN 5, MAX 10": Window("ROWS", RowCount(10), minimum=RowCount(5)),
    "RANGE MIN 5, MAX 10 SLIDE 5": Window("RANGE", of(10), of(5), minimum=of(5)),
}


@pytest.mark.parametrize("text", WINDOWS)
def test_window(text: str) -> None:
    assert window(f"WINDOW({text})") == WINDOWS[text]


@pytest.mark.parametrize("text", WINDOWS)
def test_window_as_cql_writes_it(text: str) -> None:
    assert window(f"[{text}]") == WINDOWS[text]


@pytest.mark.parametrize("text", WINDOWS)
def test_case_and_space_do_not_matter(text: str) -> None:
    spaced = text.replace(" ", "\n /* comment */ ").replace("`b\n /* comment */ c`", "`b c`")
    assert window(f"window\t( {spaced} -- the end\n)") == WINDOWS[text]
    if "`" not in text:
        lowered = window(f"Window({text.lower()})")
        assert str(lowered).lower() == str(WINDOWS[text]).lower()


@pytest.mark.parametrize("text", WINDOWS)
def test_printed_window_reads_the_same(text: str) -> None:
    assert window(str(WINDOWS[text])) == WINDOWS[text]


def test_spans_cover_the_clause() -> None:
    text = "WINDOW(RANGE 10 MINUTES SLIDE 5 SECONDS)"
    found = window(text)
    assert found.span is not None
    assert text[found.span.start : found.span.end] == text
    assert isinstance(found.size, Duration)
    assert found.size.span is not None
    assert text[found.size.span.start : found.size.span.end] == "10 MINUTES"
    assert isinstance(found.slide, Duration)
    assert found.slide.span is not None
    assert text[found.slide.span.start : found.slide.span.end] == "5 SECONDS"


# --- granularities --------------------------------------------------------------------------------

GRANULARITIES = {
    "GRANULARITY(5 SECONDS)": GranularityClause(of(5, "SECOND")),
    "GRANULARITY(10)": GranularityClause(of(10)),
    "GRANULARITY(COARSEST 1 MINUTE, FINEST 1 SECOND)": GranularityClause(
        of(1, "SECOND"), of(1, "MINUTE")
    ),
}


@pytest.mark.parametrize("text", GRANULARITIES)
def test_granularity(text: str) -> None:
    assert reader(text).granularity() == GRANULARITIES[text]
    assert reader(text.lower()).granularity() == GRANULARITIES[text]
    assert reader(str(GRANULARITIES[text])).granularity() == GRANULARITIES[text]


def test_clauses_print_window_before_granularity() -> None:
    clauses = Clauses(Window("ROWS", RowCount(3)), GranularityClause(of(5, "DAY")))
    assert str(clauses) == "WINDOW(ROWS 3) GRANULARITY(5 DAY)"
    assert str(Clauses()) == ""


# --- durations ------------------------------------------------------------------------------------

UNITS = ["MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("spelling", ["{}", "{}S"])
def test_every_unit_in_singular_and_plural(unit: str, spelling: str) -> None:
    text = spelling.format(unit)
    assert reader(f"7 {text}").duration() == of(7, unit)
    assert reader(f"7 {text.lower()}").duration() == of(7, unit)
    assert parse_duration(f"7 {text.title()}") == of(7, unit)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", of(5)),
        ("0", of(0)),
        ("-5 SECONDS", of(-5, "SECOND")),
        ("0.25 SECONDS", of("1/4", "SECOND")),
        (".5 DAYS", of("1/2", "DAY")),
        ("INTERVAL 5 MINUTES", of(5, "MINUTE")),
        ("INTERVAL '5' MINUTES", of(5, "MINUTE")),
        ("INTERVAL '5 minutes'", of(5, "MINUTE")),
        ("'5 minutes'", of(5, "MINUTE")),
        ("'0.1' SECOND", of("1/10", "SECOND")),
    ],
)
def test_duration(text: str, expected: Duration) -> None:
    assert reader(text).duration() == expected


@pytest.mark.parametrize("amount", ["0.1", "0.25", "1.000001", "123456789.123456789", "7"])
def test_printed_duration_is_exact(amount: str) -> None:
    duration = of(amount, "SECOND")
    assert reader(str(duration)).duration() == duration


@pytest.mark.parametrize(
    "text", ["", "soon", "5 parsecs", "5 5", "5 seconds late", "seconds", "'5", "1 2 seconds"]
)
def test_text_that_is_no_duration(text: str) -> None:
    with pytest.raises(ParseError, match="is not a duration"):
        parse_duration(text)


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5 minutes", of(5, "MINUTE")),
        ("5", of(5)),
        (5, of(5)),
        (datetime.timedelta(seconds=1, microseconds=5), of(1_000_005, "MICROSECOND")),
        (datetime.timedelta(days=-1), of(-86_400_000_000, "MICROSECOND")),
    ],
)
def test_parameter_as_a_duration(value: object, expected: Duration) -> None:
    assert window("WINDOW(RANGE :d)", d=value) == Window("RANGE", expected)
    assert window("WINDOW(RANGE :d SLIDE :d)", d=value) == Window("RANGE", expected, expected)
    assert reader("GRANULARITY(:d)", d=value).granularity() == GranularityClause(expected)


def test_parameter_as_a_number_before_a_unit() -> None:
    assert window("WINDOW(RANGE :n MINUTES)", n=5) == Window("RANGE", of(5, "MINUTE"))


def test_parameter_as_a_number_of_rows() -> None:
    assert window("WINDOW(ROWS :n SLIDE :m)", n=5, m=2) == Window("ROWS", RowCount(5), RowCount(2))


@pytest.mark.parametrize("value", [True, 1.5, None, [1], b"5"])
def test_parameter_that_is_neither(value: object) -> None:
    with pytest.raises(ParseError):
        window("WINDOW(RANGE :d)", d=value)
    with pytest.raises(ParseError):
        window("WINDOW(ROWS :d)", d=value)
