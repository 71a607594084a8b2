"""The command line: data on stdout, all else on stderr, and exit codes that mean something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.cli.main import run

STREAM = "CREATE STREAM Bid (auction INT, price DOUBLE, ts TIMESTAMP) SOURCE f() ORDERED BY ts;\n"
QUERY = (
    "SELECT auction, MAX(price) AS best FROM Bid WINDOW(RANGE 10 MINUTES) "
    "WHERE price > 1 GROUP BY auction;\n"
)
PLAN = """\
Map columns=[Bid.auction, max AS best]
  Aggregate by=[Bid.auction] compute=[max(Bid.price) AS max]
    Filter where=Bid.price > CAST(1 AS DOUBLE)
      TimeWindow range=10 MINUTES
        Source stream=Bid
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the current directory, so that messages do not depend on where that is."""
    monkeypatch.chdir(tmp_path)
    return Path("auction.sql")


def command(
    *arguments: str, input: bytes | None = None, stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "millstream", *arguments],
        input=input,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONUTF8": "1"},
    )


# --- what it prints -------------------------------------------------------------------------------


def test_explain_prints_the_plan(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + QUERY)
    assert run(["explain", str(file)]) == 0
    assert capsys.readouterr() == (PLAN, "")


def test_explain_prints_every_query(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + QUERY + "SELECT price FROM Bid")
    assert run(["explain", str(file)]) == 0
    second = "Map columns=[Bid.price]\n  Source stream=Bid\n"
    assert capsys.readouterr() == (PLAN + "\n" + second, "")


def test_explain_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + QUERY)
    assert run(["explain", "--format", "json", str(file)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    plan = json.loads(out)
    names = []
    while plan is not None:
        names.append(plan["operator"])
        plan = next(iter(plan.get("inputs", [])), None)
    assert names == ["Map", "Aggregate", "Filter", "TimeWindow", "Source"]


def test_a_file_without_queries_prints_nothing(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("", "-- nothing\n", STREAM):
        file.write_text(text)
        assert run(["explain", str(file)]) == 0
        assert capsys.readouterr() == ("", "")


def test_warnings_go_to_stderr(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + "SELECT DISTINCT auction FROM Bid")
    assert run(["explain", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out == "Distinct\n  Map columns=[Bid.auction]\n    Source stream=Bid\n"
    lines = err.splitlines()
    assert lines[0].startswith("warning: DISTINCT sees only rows of the same instant")
    assert lines[1] == "  --> auction.sql:2:30"


def test_errors_go_to_stderr(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + "SELECT pricee\nFROM Bid")
    assert run(["explain", str(file)]) == 1
    assert capsys.readouterr() == (
        "",
        'error: column "pricee" does not exist in stream "Bid"\n'
        "  --> auction.sql:2:8\n"
        "2 | SELECT pricee\n"
        "  |        ^^^^^^\n"
        'help: did you mean "price"?\n',
    )


def test_warnings_come_before_the_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was warned about is not lost because a later statement is wrong."""
    file.write_text(STREAM + "SELECT DISTINCT auction FROM Bid;\nSELECT pricee FROM Bid")
    assert run(["explain", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("warning: DISTINCT sees only")
    assert 'error: column "pricee" does not exist' in err


def test_a_byte_order_mark_does_not_move_places(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(b"\xef\xbb\xbfSELECT a FROM Nowhere")
    assert run(["explain", str(file)]) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[1:4] == [
        "  --> auction.sql:1:15", "1 | SELECT a FROM Nowhere", "  |               ^^^^^^^",
    ]  # fmt: skip


# --- what cannot be read --------------------------------------------------------------------------


def test_a_missing_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(file)]) == 2
    assert capsys.readouterr() == (
        "",
        'error: "auction.sql" cannot be read: no such file or directory\n',
    )


def test_a_directory(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.mkdir()
    assert run(["explain", str(file)]) == 2
    assert capsys.readouterr() == ("", 'error: "auction.sql" cannot be read: is a directory\n')


def test_a_binary_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(bytes(range(256)))
    assert run(["explain", str(file)]) == 2
    assert capsys.readouterr() == ("", 'error: "auction.sql" is not a text file in UTF-8\n')


def test_a_file_of_zeros(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"\x00" * 100)
    assert run(["explain", str(file)]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")


# --- usage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [[], ["explain"], ["frobnicate"], ["explain", "--format", "xml", "f"], ["explain", "a", "b"],
     ["--frob"]],
)  # fmt: skip
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        run(arguments)
    assert exit.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: millstream")


@pytest.mark.parametrize("arguments", [["--help"], ["explain", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        run(arguments)
    assert exit.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("usage: millstream")
    assert out.count("millstream explain ") >= 2, "two real examples"


# --- as a process ---------------------------------------------------------------------------------


def test_as_a_process(file: Path) -> None:
    file.write_text(STREAM + QUERY)
    done = command("explain", str(file))
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, PLAN, b"")


def test_standard_input() -> None:
    done = command("explain", "-", input=(STREAM + QUERY).encode())
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, PLAN, b"")


def test_an_error_in_standard_input() -> None:
    done = command("explain", "-", input=b"SELECT a FROM Nowhere")
    assert (done.returncode, done.stdout) == (1, b"")
    assert "  --> <stdin>:1:15" in done.stderr.decode().splitlines()


def test_standard_input_that_is_no_text() -> None:
    done = command("explain", "-", input=b"\xff\xfe\x80SELECT")
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"is not a text file in UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_goes_away(file: Path) -> None:
    """`millstream explain … | head -1`: no traceback, whoever closed the pipe."""
    file.write_text(STREAM + QUERY * 100)
    read, write = os.pipe()
    os.close(read)
    try:
        done = command("explain", str(file), stdout=write)
    finally:
        os.close(write)
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
    assert done.returncode == 0


def test_a_terminal_that_cannot_show_the_text(file: Path) -> None:
    """The message has characters that ASCII lacks; it is still given."""
    file.write_text("SELECT 'é∞' AS a, nothing FROM Nowhere", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "millstream", "explain", str(file)],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert done.stderr.startswith(b'error: stream "Nowhere" does not exist')
