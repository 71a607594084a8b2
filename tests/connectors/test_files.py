"""Streams in files: what is read, in which order, and the errors for rows that do not fit."""

from __future__ import annotations

import datetime
import gzip
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream as ms
from runtime.live import SOON, Seen

BID = "t BIGINT, item STRING, price DOUBLE"


def session_of(source: str, columns: str = BID, **options: Any) -> ms.Session:
    session = ms.Session(**options)
    session.sql(f"CREATE STREAM Bid ({columns}) SOURCE {source} ORDERED BY t")
    return session


def started(source: str, columns: str = BID) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows that a started query gives, and what it tells of others."""
    running = session_of(source, columns).sql("SELECT * FROM Bid").start()
    running.wait(SOON)
    return rows_of(running.results()), [error.message for error in running.errors]


def run(source: str, columns: str = BID) -> list[dict[str, Any]]:
    return rows_of(session_of(source, columns).sql("SELECT * FROM Bid").run())


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    return table.drop_columns(["valid_from", "valid_to"]).to_pylist()


def write(path: Path, text: str, modified: float | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if modified is not None:
        os.utime(path, (modified, modified))
    return path


def write_parquet(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


ROWS = [
    {"t": 1, "item": "vase", "price": 2.5},
    {"t": 2, "item": None, "price": 3.0},
    {"t": 4, "item": "clock", "price": None},
]
CSV = "t,item,price\n1,vase,2.5\n2,,3\n4,clock,\n"
JSON = '{"t":1,"item":"vase","price":2.5}\n{"t":2,"price":3}\n{"t":4,"item":"clock"}\n'


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """The same rows in each format."""
    write(tmp_path / "csv" / "a.csv", CSV)
    write(tmp_path / "json" / "a.json", JSON)
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    write_parquet(tmp_path / "parquet" / "a.parquet", extra=[1, 2, 3], **columns)
    return tmp_path


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_each_format(folders: Path, format: str) -> None:
    for path in (folders / format, folders / format / f"a.{format}", folders / format / "*"):
        assert run(f"{format}('{path}')") == ROWS
        assert started(f"{format}(path => '{path}')") == (ROWS, [])


# --- which files, and in which order --------------------------------------------------------------


def test_files_come_in_order_of_modification_then_of_name(tmp_path: Path) -> None:
    for name, modified, t in (("b", 100, 1), ("c", 100, 2), ("a", 200, 3), ("d", 50, 0)):
        write(tmp_path / f"{name}.csv", f"t\n{t}\n", modified)
    seen = Seen()
    session_of(f"csv('{tmp_path}')", "t BIGINT").sql("SELECT t FROM Bid").start(seen).wait(SOON)
    assert [row["t"] for row in seen.rows()] == [0, 1, 2, 3]


def test_run_sorts_by_time(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "t\n5\n1\n", 100)
    write(tmp_path / "b.csv", "t\n3\n", 200)
    assert [row["t"] for row in run(f"csv('{tmp_path}')", "t BIGINT")] == [1, 3, 5]


def test_what_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "t\n1\n")
    for name in (".a.csv", "_a.csv", "b.csv._COPYING_", "deeper/a.csv", "_day=1/a.csv"):
        write(tmp_path / name, "t\n2\n")
    assert run(f"csv('{tmp_path}')", "t BIGINT") == [{"t": 1}]


def test_columns_in_the_names_of_folders(tmp_path: Path) -> None:
    for format, text in (("csv", "t\n1\n"), ("json", '{"t": 1, "city": "x"}\n')):
        write(tmp_path / format / "day=2026-01-01" / "City=S%C3%A3o" / "a", text)
        write(tmp_path / format / "day=__HIVE_DEFAULT_PARTITION__" / "city=Ulm" / "a", text)
    path = tmp_path / "parquet"
    write_parquet(path / "day=2026-01-01" / "City=S%C3%A3o" / "a", t=[1], day=["lies"])
    write_parquet(path / "day=__HIVE_DEFAULT_PARTITION__" / "city=Ulm" / "a", t=[1])
    for format in ("csv", "json", "parquet"):
        found = run(f"{format}('{tmp_path / format}')", "t BIGINT, day DATE, city STRING")
        assert sorted(found, key=lambda row: row["city"]) == [
            {"t": 1, "day": datetime.date(2026, 1, 1), "city": "São"},
            {"t": 1, "day": None, "city": "Ulm"},
        ]


def test_a_folder_whose_name_has_no_such_value(tmp_path: Path) -> None:
    write(tmp_path / "day=monday" / "a.csv", "t\n1\n")
    with pytest.raises(ms.DataError, match="'monday' in column \"day\" is not DATE"):
        run(f"csv('{tmp_path}')", "t BIGINT, day DATE")


def test_packed_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    assert run(f"csv('{tmp_path}')") == ROWS
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "a.json.gz").write_bytes(gzip.compress(JSON.encode()))
    assert run(f"json('{tmp_path}/json')") == ROWS


def test_empty_files(folders: Path) -> None:
    write(folders / "csv" / "b.csv", "")
    write(folders / "csv" / "c.csv", "t,item,price\n")
    write(folders / "json" / "b.json", "\n\n")
    for format in ("csv", "json"):
        assert run(f"{format}('{folders / format}')") == ROWS
    write(folders / "none" / "a.csv", "")
    assert run(f"csv('{folders}/none', header => false)") == []


def test_follow(tmp_path: Path) -> None:
    seen = Seen()
    session = session_of(f"csv('{tmp_path}', follow => true, poll => '10 milliseconds')")
    with session.sql("SELECT t FROM Bid").start(seen):
        write(tmp_path / ".a", CSV).rename(tmp_path / "a.csv")
        assert len(seen.await_rows(3)) == 3
        write(tmp_path / ".b", "price,t,item\n7,9,x\n").rename(tmp_path / "0.csv")
        assert seen.await_rows(4)[-1]["t"] == 9
    assert len(rows_of(session.sql("SELECT * FROM Bid").run())) == 4, "what is there"
    running = session.sql("SELECT * FROM Bid").start(trigger="available_now")
    assert running.wait(SOON)
    assert running.results().num_rows == 4


# --- values ---------------------------------------------------------------------------------------

TYPES = "t BIGINT, b BOOLEAN, i INT, r REAL, d DECIMAL(6, 2), day DATE, ts TIMESTAMP, s STRING"
VALUES: dict[str, Any] = {
    "t": 1,
    "b": True,
    "i": -3,
    "r": 0.5,
    "d": Decimal("1.25"),
    "day": datetime.date(2026, 2, 28),
    "ts": datetime.datetime(2026, 2, 28, 12, 0, 0, 500_000),
    "s": "ä, b",
}
AT = ("2026-02-28 12:00:00.5", "2026-02-28T12:00:00.5Z", "2026-02-28T13:00:00.5+01:00")


@pytest.mark.parametrize("at", AT)
def test_values_as_text(tmp_path: Path, at: str) -> None:
    lines = ["t,b,i,r,d,day,ts,s", f'1,true,-3,0.5,1.25,2026-02-28,{at},"ä, b"', "," * 7]
    path = write(tmp_path / "a.csv", "\n".join(lines))
    rows, errors = started(f"csv('{path}')", TYPES)
    assert rows == [VALUES]
    assert errors == [f'file "{path}", line 3: the time column "t" is NULL']


@pytest.mark.parametrize("broken", [False, True], ids=["together", "line by line"])
@pytest.mark.parametrize("at", AT)
def test_values_in_json(tmp_path: Path, at: str, broken: bool) -> None:
    line = '{"t":1,"b":true,"i":-3,"r":0.5,"d":1.25,"day":"2026-02-28","TS":"%s","s":"ä, b","x":{}}'
    path = write(tmp_path / "a", line % at + "\nnonsense" * broken)
    rows, errors = started(f"json('{path}')", TYPES)
    assert rows == [VALUES]
    assert len(errors) == broken


def test_json_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "a", '\ufeff{"t":1,"item":"x"}\n')
    assert run(f"json('{path}')") == [{"t": 1, "item": "x", "price": None}]


def test_nested_values_in_json(tmp_path: Path) -> None:
    path = write(tmp_path / "a", '{"t":1,"a":[1,null],"s":{"x":"u","day":"2026-01-01"}}\n')
    rows = run(f"json('{path}')", "t BIGINT, a ARRAY<INT>, s STRUCT<x: STRING, day: DATE>")
    assert rows == [{"t": 1, "a": [1, None], "s": {"x": "u", "day": datetime.date(2026, 1, 1)}}]


def test_how_csv_is_laid_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a", '1;"";-\n2;-;3\n"3";"a\n""b""";\n')
    assert run(f"csv('{path}', header => false, delimiter => ';', null => '-')") == [
        {"t": 1, "item": "", "price": None},
        {"t": 2, "item": None, "price": 3.0},
        {"t": 3, "item": 'a\n"b"', "price": None},
    ]
    path = write(tmp_path / "b", "\ufeffPRICE\tt\titem\n1\t2\t3\n")
    assert run(f"csv('{path}', delimiter => '\\t')") == [{"t": 2, "item": "3", "price": 1.0}]


def test_many_rows_come_in_parts(tmp_path: Path) -> None:
    count = 200_000
    write(tmp_path / "a.csv", "t\n" + "\n".join(map(str, range(count))))
    write_parquet(tmp_path / "a.parquet", t=list(range(count)))
    write(tmp_path / "a.json", "\n".join(f'{{"t": {t}}}' for t in range(count)))
    for format in ("csv", "parquet", "json"):
        source = f"{format}('{tmp_path}/a.{format}')"
        query = session_of(source, "t BIGINT").sql("SELECT t FROM Bid")
        running = query.start("noop")
        running.wait(SOON)
        assert (running.progress.rows_in, running.progress.errors) == (count, 0)


# --- rows that cannot be read ---------------------------------------------------------------------


def test_rows_of_csv_that_cannot_be_read(tmp_path: Path) -> None:
    lines = ["t,item,price", "1,a,1", "2,b", "x,c,3", "4,d,4,5", "5,e,much", "6,f,6", "7"]
    path = tmp_path / "a.csv"
    path.write_bytes("\n".join(lines).encode() + b"\n8,\xff,8\n")
    rows, errors = started(f"csv('{path}')")
    assert [row["t"] for row in rows] == [1, 6]
    place = f'file "{path}", line'
    assert errors == [
        f"{place} 3: expected 3 values, found 2: '2,b'",
        f"{place} 4: 'x' in column \"t\" is not BIGINT",
        f"{place} 5: expected 3 values, found 4: '4,d,4,5'",
        f"{place} 6: 'much' in column \"price\" is not DOUBLE",
        f"{place} 8: expected 3 values, found 1: '7'",
        f'{place} 9: the text in column "item" is not UTF-8',
    ]


def test_rows_of_json_that_cannot_be_read(tmp_path: Path) -> None:
    lines = ['{"t":1}', "", '{"t":"x"}', '{"t":2,', "[3]", '{"t":4} {"t":5}', '{"t":6.0}', "{}"]
    path = write(tmp_path / "a.json", "\n".join(lines))
    rows, errors = started(f"json('{path}')")
    assert [row["t"] for row in rows] == [1, 6]
    place = f'file "{path}", line'
    reasons = [
        "3: 'x' in column \"t\" is not BIGINT",
        "4: '{\"t\":2,' is not JSON",
        "5: '[3]' is not an object",
        '6: \'{"t":4} {"t":5}\' is not JSON: Extra data',
        '8: the time column "t" is NULL',
    ]
    for error, reason in zip(errors, reasons, strict=True):
        assert error.startswith(f"{place} {reason}")


def test_rows_of_parquet_that_cannot_be_read(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a", t=[1, None, 3], item=["a"] * 3, price=["1", "2", "?"])
    rows, errors = started(f"parquet('{path}')")
    assert [row["t"] for row in rows] == [1]
    assert errors == [
        f'file "{path}", row 2: the time column "t" is NULL',
        f'file "{path}", row 3: \'?\' in column "price" is not DOUBLE',
    ]


def test_run_stops_at_the_first_row_that_cannot_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "t,item,price\n1,a,1\nx,b,2\n")
    with pytest.raises(ms.DataError) as error:
        run(f"csv('{path}')")
    assert str(error.value) == (
        f'error: stream "Bid", row 2: file "{path}", line 3: \'x\' in column "t" is not BIGINT'
    )


# --- what cannot be read at all -------------------------------------------------------------------


def refusal(source: str, columns: str = BID) -> str:
    with pytest.raises(ms.MillstreamError) as error:
        run(source, columns)
    return str(error.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "t,itme,price\n1,a,2\n")
    place = f'error: stream "Bid": file "{path}"'
    assert refusal(f"csv('{path}')") == (
        f'{place} has no column "item"\nhelp: did you mean "itme"?'
    )
    assert refusal(f"parquet('{path}')").startswith(f"{place} cannot be read as Parquet: ")
    assert refusal(f"json('{path}')") == (
        f'error: stream "Bid", row 1: file "{path}", line 1: \'t,itme,price\' is not an object\n'
        "help: write one object per line"
    )
    path = write_parquet(tmp_path / "b", t=[1], item=[[1]], price=[2.0])
    assert refusal(f"parquet('{path}')") == (
        f'error: stream "Bid": file "{path}" has list<element: int64> in column "item", which is '
        "not STRING"
    )
    assert refusal(f"csv('{path}')").startswith(f'error: stream "Bid": file "{path}" ')


def test_columns_that_cannot_be_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "t,Item,price,ITEM\n")
    assert refusal(f"csv('{path}')") == (
        f'error: stream "Bid": file "{path}" has several columns "item"'
    )
    write(tmp_path / "a.csv", "t,Item,price,item\n1,x,2,y\n")
    assert run(f"csv('{path}')") == [{"t": 1, "item": "y", "price": 2.0}]


def test_a_file_of_which_nothing_is_declared(tmp_path: Path) -> None:
    write(tmp_path / "t=1" / "a.csv", "x\n1\n")
    message = refusal(f"csv('{tmp_path}')", "t BIGINT")
    assert "lies in folders that give the values of all declared columns" in message


def test_nothing_to_read(tmp_path: Path) -> None:
    assert refusal(f"csv('{tmp_path}/none')") == (
        f'error: stream "Bid": there is no file or folder "{tmp_path}/none"'
    )
    assert refusal(f"csv('{tmp_path}/*.csv')") == (
        f'error: stream "Bid": there are no files in "{tmp_path}/*.csv"\n'
        "help: follow => TRUE waits for them"
    )
    session = session_of(f"csv('{tmp_path}/none')")
    with pytest.raises(ms.DataError, match="there is no file or folder"):
        session.sql("SELECT * FROM Bid").start()


def test_a_started_query_tells_of_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "t,price\n1,2\n")
    with pytest.raises(ms.QueryError) as error:
        started(f"csv('{path}')")
    assert str(error.value) == (
        f'error: query "query_1": stream "Bid" cannot be read: file "{path}" has no column "item"\n'
        'help: the columns are "t" and "price"'
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "csv('a', delimeter => ';')",
            'has no option "delimeter"\nhelp: did you mean "delimiter"?',
        ),
        ("parquet('a', header => true)", 'has no option "header"\nhelp: the options are'),
        ("csv()", "needs \"path\"\nhelp: write csv(path => '…')"),
        ("csv('a', 'b')", "takes one value without a name"),
        ("csv('a', path => 'b')", 'is given "path" twice'),
        ("json(5)", 'cannot use 5 for "path"\nhelp: write a quoted string'),
        ("csv('a', header => 1)", 'cannot use 1 for "header"\nhelp: write TRUE or FALSE'),
        ("csv('a', delimiter => '--')", "needs a delimiter of one character"),
        ("json('a', poll => 'often')", "cannot use 'often' for \"poll\"\nhelp: write a duration"),
    ],
)
def test_wrong_arguments(source: str, message: str) -> None:
    name = source.partition("(")[0]
    assert refusal(source).startswith(f'error: stream "Bid": connector "{name}" {message}')


def test_columns_that_no_text_stands_for() -> None:
    assert refusal("csv('a')", "t BIGINT, x ARRAY<INT>") == (
        'error: stream "Bid": connector "csv" cannot read column "x": ARRAY<INT> has no text form'
    )


# --- after a restart ------------------------------------------------------------------------------


def test_a_checkpoint_goes_on_where_it_was(tmp_path: Path) -> None:
    """The answers of both runs together are those of one; bad rows are counted among the others."""
    lines = ["t", *(str(t) if t % 10 else "x" for t in range(1, 200))]
    write(tmp_path / "data" / "a.csv", "\n".join(lines), 100)
    write(tmp_path / "data" / "b.csv", "t\n" + "\n".join(map(str, range(200, 300))), 200)
    given: list[int] = []

    def sink(table: pa.Table, batch: Any) -> None:
        given.extend(table.column("t").to_pylist())

    for _ in range(2):
        query = session_of(f"csv('{tmp_path}/data')", "t BIGINT").sql("SELECT t FROM Bid")
        query.start(sink, checkpoint=str(tmp_path / "checkpoint")).wait(SOON)
    assert given == [t for t in range(1, 300) if t % 10 or t >= 200]


def test_files_that_come_later_and_are_older(tmp_path: Path) -> None:
    """They are read later, and again in that order."""
    seen = Seen()
    source = f"csv('{tmp_path}/data', follow => true, poll => '5 milliseconds')"
    write(tmp_path / "data" / "b", "t\n1\n", 2000)
    for run in range(3):
        query = session_of(source, "t BIGINT").sql("SELECT t FROM Bid")
        with query.start(seen, checkpoint=str(tmp_path / "checkpoint")):
            seen.await_rows(run + 1)
            write(tmp_path / f"new-{run}", f"t\n{run + 2}\n", 1000 - run).rename(
                tmp_path / "data" / f"a{run}"
            )
            seen.await_rows(run + 2)
    assert [row["t"] for row in seen.rows()] == [1, 2, 3, 4]


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: write(path, "t\n8\n9\n")])
def test_files_that_are_not_what_they_were(tmp_path: Path, harm: Any) -> None:
    path = write(tmp_path / "data" / "a.csv", "t\n1\n2\n")
    source = f"csv('{tmp_path}/data', follow => true)"
    seen = Seen()
    with (
        session_of(source, "t BIGINT")
        .sql("SELECT t FROM Bid")
        .start(seen, checkpoint=str(tmp_path / "checkpoint"))
    ):
        seen.await_rows(2)
    harm(path)
    query = session_of(source, "t BIGINT").sql("SELECT t FROM Bid")
    with pytest.raises(ms.QueryError) as error:
        query.start("noop", checkpoint=str(tmp_path / "checkpoint")).wait(SOON)
    assert str(error.value) == (
        'error: query "query_1": stream "Bid" cannot be read: its files have changed since '
        f'the last run: "{path}" has changed or is gone\n'
        "help: restore them, or start the query with a new checkpoint"
    )


def test_what_is_available_again_and_again(tmp_path: Path) -> None:
    """A window continues over the files of another day."""
    seen = Seen()
    source = f"csv('{tmp_path}/data', follow => true)"
    for day in range(3):
        write(tmp_path / "data" / f"{day}.csv", f"t\n{10 * day}\n{10 * day + 1}\n")
        query = session_of(source, "t BIGINT").sql(
            "SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 12) EMIT CHANGES"
        )
        running = query.start(
            seen, checkpoint=str(tmp_path / "checkpoint"), trigger="available_now"
        )
        assert running.wait(SOON)
    counts = {row["at"]: row["n"] for row in seen.rows() if row["change"] > 0}
    assert counts == {0: 1, 1: 2, 10: 3, 11: 4, 12: 3, 13: 2, 20: 3}
