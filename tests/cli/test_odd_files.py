"""Files of statements as people have them: empty, without a last semicolon, with odd values."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.statements import QUERY, STREAM, command, write
from millstream.cli.main import run_command

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(capsys: Captured, *arguments: str) -> tuple[int, str, str]:
    code = run_command(list(arguments))
    return (code, *capsys.readouterr())


@pytest.mark.parametrize("text", ["", "\n", "  \t\n", "-- nothing yet\n", ";", ";;\n;"])
def test_nothing_in_it(text: str, folder: Path, capsys: Captured) -> None:
    file = write(folder, text)
    assert answer(capsys, "run", "--engine", "local", file) == (
        0,
        "",
        'warning: "file.sql" has no query: nothing was run\n',
    )
    assert answer(capsys, "check", file) == (0, "", "0 statements, 0 queries: fine\n")
    assert answer(capsys, "explain", file) == (0, "", "")


def test_streams_and_no_query(folder: Path, capsys: Captured) -> None:
    file = write(folder, STREAM)
    assert answer(capsys, "run", "--engine", "local", file) == (
        0,
        "",
        'warning: "file.sql" has no query: nothing was run\n',
    )
    write(folder, STREAM + "SHOW STREAMS")
    code, out, err = answer(capsys, "run", "--engine", "local", file)
    assert (code, out.splitlines()[0], err) == (0, "name,kind,columns,time", "")


@pytest.mark.parametrize("end", ["", ";", "\n;\n;\n", "\n-- done", "; -- done\n"])
def test_how_it_ends(end: str, folder: Path, capsys: Captured) -> None:
    file = write(folder, STREAM + QUERY.rstrip().rstrip(";") + end)
    assert answer(capsys, "run", "--engine", "local", file) == (
        0,
        "sensor,best,valid_from,valid_to\na,5,1,4\nb,9,3,6\na,7,4,7\n",
        "",
    )


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding(encoding: str, folder: Path, capsys: Captured) -> None:
    Path("file.sql").write_bytes("SELECT 'café'".encode(encoding))
    for name in ("run", "check", "explain", "shell"):
        expected = 'error: "file.sql" is not a text file in UTF-8\n'
        assert answer(capsys, name, "file.sql") == (2, "", expected)


def test_lines_that_end_as_on_windows(folder: Path, capsys: Captured) -> None:
    write(folder, "")
    Path("file.sql").write_bytes((STREAM + QUERY).replace("\n", "\r\n").encode())
    code, out, err = answer(capsys, "run", "--engine", "local", "file.sql")
    assert (code, len(out.splitlines()), err) == (0, 4, "")


ODD = """
CREATE STREAM Odd (t TIMESTAMP, price DECIMAL(10, 2), day DATE, many BIGINT, name STRING)
    SOURCE json('odd.json') ORDERED BY t;
SELECT t, price, day, many, name, price * 2 AS twice FROM Odd;
"""
ROWS = """\
{"t": "2024-01-01 10:00:00", "price": 1.10, "day": "2024-02-29", "many": 9007199254740993}
{"t": "2024-01-01 10:00:01.5", "price": null, "day": null, "many": null, "name": "é\\u0007\\"\\n"}
"""


def test_values_as_json(folder: Path, capsys: Captured) -> None:
    """Decimals keep their places as text, instants are text, NULL is null, integers stay whole."""
    Path("odd.json").write_text(ROWS)
    file = write(folder, ODD)
    code, out, err = answer(capsys, "run", "--engine", "local", "--format", "json", file)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        '{"t": "2024-01-01 10:00:00", "price": "1.10", "day": "2024-02-29", '
        '"many": 9007199254740993, "name": null, "twice": "2.20", '
        '"valid_from": "2024-01-01 10:00:00", "valid_to": "2024-01-01 10:00:00.000001"}',
        '{"t": "2024-01-01 10:00:01.500000", "price": null, "day": null, "many": null, '
        '"name": "é\\u0007\\"\\n", "twice": null, '
        '"valid_from": "2024-01-01 10:00:01.500000", "valid_to": "2024-01-01 10:00:01.500001"}',
    ]


def test_the_reader_of_json_may_go_away(folder: Path) -> None:
    """`| head` of many rows, in a real pipe."""
    many = "CREATE STREAM N (t BIGINT, v BIGINT) SOURCE csv('n.csv') ORDERED BY t;\n"
    Path("n.csv").write_text("t,v\n" + "".join(f"{n},{n}\n" for n in range(20_000)))
    file = write(folder, many + "SELECT v FROM N")
    millstream = f"set -o pipefail; {sys.executable} -m millstream"
    for part in ("explain", "run --format json", "run --format table"):
        line = f"{millstream} {part} --engine local {file} | head -1"
        done = command("-c", line, program="bash", folder=folder)
        assert (done.returncode, done.stderr) == (0, b""), part
        assert done.stdout.count(b"\n") == 1
