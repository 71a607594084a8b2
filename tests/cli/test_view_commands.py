"""Views and pull queries on the command line: `run`, `check`, `explain` and the shell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.statements import LIVE, STREAM, command, write
from millstream.cli.main import run_command

Captured = pytest.CaptureFixture[str]

VIEW = """\
CREATE MATERIALIZED VIEW best AS
    SELECT sensor, MAX(value) AS best FROM Reading WINDOW(UNBOUNDED) GROUP BY sensor RETAIN 100;
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def local(*arguments: str) -> int:
    return run_command(["run", "--engine", "local", *arguments])


@pytest.mark.filterwarnings("ignore::millstream.MillstreamWarning")
def test_a_pull_query_prints_a_table_once(folder: Path, capsys: Captured) -> None:
    asked = "SELECT * FROM best ORDER BY best;\nSELECT COUNT(*) AS n FROM best AS OF 1;\n"
    assert local("--format", "table", write(folder, STREAM + VIEW + asked)) == 0
    assert capsys.readouterr().out == (
        "sensor  best\n"
        "------  ----\n"
        "a          7\n"
        "b          9\n"
        "\n"
        "n\n"
        "-\n"
        "1\n"
    )  # fmt: skip


def test_a_view_alone_runs_to_the_end(folder: Path, capsys: Captured) -> None:
    view = VIEW.replace("RETAIN 100", "INTO csv('answers') EMIT EVERY 2")
    assert local(write(folder, STREAM + view)) == 0
    assert capsys.readouterr() == ("", "")
    lines = [line for path in folder.glob("answers/*.csv") for line in path.read_text().split()]
    assert sorted(line for line in lines if line[1] in "ab") == sorted(
        ['"a",5,2', '"a",7,4', '"b",9,4']
    )


def test_what_a_view_refuses_is_told(folder: Path, capsys: Captured) -> None:
    assert local(write(folder, STREAM + VIEW + "SELECT * FROM best AS OF -99999;\n")) == 1
    assert capsys.readouterr().err.startswith('error: "best" is known from')


def test_check_starts_nothing(folder: Path, capsys: Captured) -> None:
    statements = STREAM.replace("readings.csv", "missing.csv") + VIEW + "SELECT best FROM best;"
    assert run_command(["check", write(folder, statements)]) == 0
    assert capsys.readouterr().err == "3 statements, 1 query, 1 view: fine\n"


def test_explain_tells_views_and_pull_queries(folder: Path, capsys: Captured) -> None:
    file = write(folder, STREAM + VIEW + "SELECT best FROM best WHERE best > 5;")
    assert run_command(["explain", "--engine", "local", file]) == 0
    view, pull = capsys.readouterr().out.split("\n\n")
    assert view.startswith("Map columns=[Reading.sensor")
    assert pull.splitlines()[-1].strip() == "Source stream=best"
    for form in ("--json", "--dot", "--verbose", "--costs"):
        assert run_command(["explain", "--engine", "local", form, file]) == 0


def test_views_over_streams_that_go_on_are_asked_when_the_run_ends(folder: Path) -> None:
    statements = LIVE + (
        "CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 1 DAY);\n"
        "SELECT n > 0 AS some FROM n;\nSELECT itemID FROM Bid;\n"
    )
    file = write(folder, statements)
    program = [sys.executable, "-m", "millstream", "run", "--engine", "local", file]
    process = subprocess.Popen(program, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(20)]
    assert first[0] == "itemID,valid_from,valid_to\n"
    os.kill(process.pid, signal.SIGINT)
    told, _ = process.communicate(timeout=60)
    assert "".join([*first, told]).endswith("\n\nsome\ntrue\n")


def test_a_checkpoint_keeps_views_too(folder: Path, capsys: Captured) -> None:
    """What was read before is in the view, though its rows are not read again."""
    follow = STREAM.replace("readings.csv", "parts").replace("TRUE", "TRUE, follow => TRUE")
    file = write(folder, follow + VIEW + "SELECT sensor, best FROM best;\n")
    parts = folder / "parts"
    parts.mkdir()
    for number, (rows, last, wanted) in enumerate(
        [("1,a,5\n3,b,9\n4,a,7\n", "4", "a,5\nb,9\n"), ("7,c,1\n9,a,3\n", "9", "a,7\nb,9\nc,1\n")]
    ):
        (parts / f"{number}.csv").write_text("t,sensor,value\n" + rows)
        assert local("--checkpoint", "kept", "--until", last, file) == 0
        assert capsys.readouterr().out == "sensor,best\n" + wanted
    assert (folder / "kept" / "best" / "rows").is_dir()


def test_the_shell(folder: Path) -> None:
    typed = (
        STREAM
        + VIEW
        + "SHOW VIEWS;\nSELECT best FROM best;\n\\d best\nDROP VIEW best;\nSHOW VIEWS;\n"
    )
    write(folder, "")
    done = command("shell", folder=folder, input=typed.encode())
    assert done.returncode == 0
    out = done.stdout.decode() if isinstance(done.stdout, bytes) else done.stdout
    err = done.stderr.decode() if isinstance(done.stderr, bytes) else done.stderr
    assert "best runs; DROP VIEW best ends it" in err
    assert "SELECT sensor, MAX(value) AS best FROM Reading" in out
    assert "sensor  STRING" in out
    assert "best\n----\n   7\n   9\n(2 rows)\n" in out


def test_whole_answers_until_an_instant(folder: Path, capsys: Captured) -> None:
    query = "SELECT sensor, value FROM Reading WINDOW(RANGE 10) EMIT EVERY 2;"
    assert local("--until", "5", write(folder, STREAM + query)) == 0
    assert capsys.readouterr().out == "sensor,value,at\na,5,2\na,5,4\na,7,4\nb,9,4\n"
