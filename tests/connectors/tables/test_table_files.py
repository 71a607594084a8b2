"""Tables in csv, parquet and json files: what they have, and what becomes of them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.tables.followers import contents, declared, following
from millstream.connectors.registry import table_source
from millstream.model import types
from millstream.model.errors import DataError, MillstreamError

COLUMNS = {"id": types.BIGINT, "name": types.STRING}


def write(path: Path, text: str) -> None:
    """As a whole."""
    new = path.with_name(f".{path.name}")
    new.write_text(text)
    os.replace(new, path)


def message(table: object) -> str:
    with pytest.raises(MillstreamError) as error:
        contents(table)  # type: ignore[arg-type]
    return str(error.value).removeprefix("error: ")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text('id;other;name\n1;x;Ann\n2;y;\n3;z;""\n')
    return path


def test_csv(people: Path) -> None:
    table = declared("csv", COLUMNS, path=str(people), delimiter=";", key=("id",))
    rows = contents(table)
    assert rows.to_pylist() == [
        {"id": 1, "name": "Ann"},
        {"id": 2, "name": None},
        {"id": 3, "name": ""},
    ]
    assert rows.schema.types == list(COLUMNS.values())


def test_parquet_and_json(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"name": ["b"], "id": [2]}), tmp_path / "two.parquet")
    found = contents(declared("parquet", COLUMNS, path=str(tmp_path)))
    assert sorted(found["name"].to_pylist()) == ["a", "b"]
    (tmp_path / "x.json").write_text('{"id": 7, "name": "c"}\n')
    found = contents(declared("JSON", COLUMNS, path=str(tmp_path / "x.json")))
    assert found.to_pylist() == [{"id": 7, "name": "c"}]


def test_a_table_that_is_not_followed(people: Path) -> None:
    source = table_source(declared("csv", COLUMNS, path=str(people), delimiter=";"))
    assert source.contents().num_rows == 3
    assert list(source.changes()) == []
    source.close()


def test_a_file_that_changes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write(path, "id,name\n1,a\n2,b\n2,b\n")
    table = declared("csv", COLUMNS, path=str(path), refresh="0.02 seconds")
    with following(table) as follower:
        write(path, "id,name\n2,b\n3,c\n")
        follower.until_rows(Counter({(2, "b"): 1, (3, "c"): 1}))
        assert len(follower.history) == 2
        write(path, "id,name\n")
        follower.until_rows(Counter())
        assert not follower.troubles


def test_a_file_that_is_wrong_for_a_while(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write(path, "id,name\n1,a\n")
    table = declared("csv", COLUMNS, key=("id",), path=str(path), refresh="0.02 seconds")
    with following(table) as follower:
        write(path, "id,name\n2,a\nx,b\n")
        first = follower.until_trouble("line 3: 'x' in column \"id\" is not BIGINT")
        assert first.message.startswith('table "T": ')
        path.unlink()
        gone = follower.until_trouble(f'there are no files in "{path}"')
        assert gone.since == first.since
        write(path, "id\n1\n")
        follower.until_trouble('has no column "name"')
        write(path, "id,name\n1,a\n1,b\n")
        follower.until_trouble("2 rows have the key (1)")
        assert follower.rows == Counter({(1, "a"): 1})
        write(path, "id,name\n1,a\n")
        follower.until(lambda: follower.trouble is None)
        write(path, "id,name\n1,b\n")
        follower.until_rows(Counter({(1, "b"): 1}))
        assert [state for state in follower.history if state not in (Counter({(1, "a"): 1}),)] == [
            Counter({(1, "b"): 1})
        ]


def test_tables_that_cannot_be_read(tmp_path: Path, people: Path) -> None:
    missing = str(tmp_path / "no.csv")
    assert f'table "T": there is no file or folder "{missing}"' in message(
        declared("csv", COLUMNS, path=missing)
    )
    assert "line 2: 'Ann' in column \"name\" is not INT" in message(
        declared("csv", {"name": types.INT}, path=str(people), delimiter=";")
    )
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "t.parquet")
    assert message(declared("parquet", {"id": types.INT}, path=str(tmp_path / "t.parquet"))) == (
        f'table "T": column "id" of file "{tmp_path}/t.parquet" is string, and not all its '
        "values are INT\nhelp: declare a type that can hold all its values"
    )
    (tmp_path / "x.parquet").write_text("x")
    assert f'table "T": file "{tmp_path}/x.parquet" cannot be read as Parquet' in message(
        declared("parquet", COLUMNS, path=str(tmp_path / "x.parquet"))
    )


@pytest.mark.parametrize(
    ("connector", "options", "expected"),
    [
        (
            "csv",
            {"path": "x", "refesh": "1 second"},
            'table "T": connector "csv" has no option "refesh"\nhelp: did you mean "refresh"?',
        ),
        ("csv", {}, 'table "T": connector "csv" needs "path"\nhelp: write csv(path => \'…\')'),
        (
            "sqlite",
            {"path": "x", "table": "t", "refresh": 5},
            'table "T": connector "sqlite" cannot use 5 for "refresh"\n'
            "help: write a duration such as '5 seconds'",
        ),
        (
            "duckdb",
            {"path": "x"},
            'table "T": connector "duckdb" needs "table"\nhelp: write duckdb(table => \'…\')',
        ),
        (
            "postgre",
            {},
            'table "T" cannot be read by a connector "postgre"\nhelp: did you mean "postgres"?',
        ),
        (
            "postgres",
            {"url": "x", "table": "t", "follow": "decoding", "refresh": "1 second"},
            'table "T": connector "postgres" has both refresh and follow\n'
            "help: a followed table needs no refresh",
        ),
        (
            "postgres",
            {"url": "x", "table": "t", "follow": "log"},
            'table "T": connector "postgres" cannot use \'log\' for "follow"\n'
            'help: the choice is "decoding"',
        ),
    ],
)
def test_declarations_that_are_wrong(
    connector: str, options: dict[str, str | int], expected: str
) -> None:
    with pytest.raises(DataError) as error:
        table_source(declared(connector, COLUMNS, (), (), **options))
    assert str(error.value).removeprefix("error: ") == expected
