"""How a diagnostic becomes text."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.model.errors import Diagnostic, Span, did_you_mean, listed, located, render


def shown(text: str, start: int, end: int, help: str | None = None) -> str:
    return render(Diagnostic("wrong", Span(start, end), help), text, "f.sql")


def test_without_a_place() -> None:
    assert render(Diagnostic("wrong")) == "error: wrong"
    assert render(Diagnostic("wrong", None, "try"), "text") == "error: wrong\nhelp: try"
    assert render(Diagnostic("wrong", Span(0, 1))) == "error: wrong"


def test_a_place_on_one_line() -> None:
    assert shown("SELECT a", 7, 8, "try") == (
        "error: wrong\n  --> f.sql:1:8\n1 | SELECT a\n  |        ^\nhelp: try"
    )


def test_a_warning_says_so() -> None:
    text = render(Diagnostic("odd", Span(0, 1), severity="warning"), "a")
    assert text == "warning: odd\n  --> <sql>:1:1\n1 | a\n  | ^"


def test_the_margin_is_as_wide_as_the_number() -> None:
    text = "\n" * 99 + "abc"
    assert shown(text, 100, 102) == ("error: wrong\n    --> f.sql:100:2\n100 | abc\n    |  ^^")


def test_a_place_over_several_lines_is_underlined_to_the_end_of_the_first() -> None:
    assert shown("ab cd\nef", 3, 8).splitlines()[2:] == ["1 | ab cd", "  |    ^^"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_are_not_shown(newline: str) -> None:
    text = newline.join(["one", "two", "three"])
    start = text.index("two")
    assert shown(text, start, start + 3).splitlines()[1:] == [
        "  --> f.sql:2:1", "2 | two", "  | ^^^",
    ]  # fmt: skip


def test_tabs_stay_tabs() -> None:
    assert shown("\ta\tb", 3, 4).splitlines()[2:] == ["1 | \ta\tb", "  | \t \t^"]


@pytest.mark.parametrize(("start", "end"), [(3, 3), (3, 4), (9, 12), (3, 2)])
def test_a_place_at_or_behind_the_end_has_one_caret(start: int, end: int) -> None:
    assert shown("abc", start, end).splitlines()[1:] == [
        "  --> f.sql:1:4", "1 | abc", "  |    ^",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "\n", "\x00", "\ud800", "\u2028", "a\x0bb", "\ufeff"])
def test_any_text_can_be_shown(text: str) -> None:
    for start in range(len(text) + 2):
        assert shown(text, start, start + 1).startswith("error: wrong\n")


def test_an_error_gets_its_text_once() -> None:
    error = ms.BindError("wrong", Span(0, 1))
    assert str(error) == "error: wrong"
    for text in ("first", "second"):
        with pytest.raises(ms.BindError), located(text, "f.sql"):
            raise error
    assert "1 | first" in str(error)


@pytest.mark.parametrize(
    "kind",
    [ms.ParseError, ms.BindError, ms.CatalogError, ms.DataError, ms.QueryError],
)
def test_every_error_is_ours(kind: type[ms.MillstreamError]) -> None:
    assert issubclass(kind, ms.MillstreamError)
    assert str(kind("wrong")) == "error: wrong"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pric", 'did you mean "price"?'),
        ("PRICE", 'did you mean "price"?'),
        ("acution", 'did you mean "Auction"?'),
        ("weather", None),
        ("", None),
    ],
)
def test_did_you_mean(name: str, expected: str | None) -> None:
    assert did_you_mean(name, ["price", "Auction", "id"]) == expected


def test_listed() -> None:
    assert listed(["a"]) == '"a"'
    assert listed(["a", "b"]) == '"a" and "b"'
    assert listed(["a", "b", "c"]) == '"a", "b" and "c"'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT (a FROM Raw", ms.ParseError),
        ("SELECT nothing FROM Raw", ms.BindError),
        ("SELECT a FROM Nowhere", ms.BindError),
        ("DROP STREAM Nowhere", ms.CatalogError),
        ("CREATE STREAM Raw (a INT) SOURCE f()", ms.CatalogError),
        ("UPDATE Raw SET a = 1", ms.BindError),
    ],
)
def test_kinds_of_errors(text: str, kind: type[ms.MillstreamError]) -> None:
    session = ms.Session()
    session.sql("CREATE STREAM Raw (a INT) SOURCE f()")
    with pytest.raises(kind):
        session.sql(text)
