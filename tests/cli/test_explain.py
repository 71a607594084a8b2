"""`millstream explain`: data on stdout, all else on stderr, and exit codes that mean something."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.cli.main import run_command as run

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


GRAPH = r"""digraph "query_1" {
  rankdir=BT;
  node [shape=box];
  n0 [label="Map\lcolumns=['a \"b\" \\\\ c' AS text]\l"];
  n1 [label="Filter\lwhere=Bid.auction = 1\l"];
  n2 [label="Source\lstream=Bid\l"];
  n2 -> n1;
  n1 -> n0;
}
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
        timeout=300,
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
    assert run(["explain", "--json", str(file)]) == 0
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
    ("arguments", "message"),
    [
        (["explain"], "missing argument 'FILE'"),
        (["frobnicate"], "no such command 'frobnicate'"),
        (["explain", "--format", "xml", "f"], "no such option: --format"),
        (["explain", "a", "b"], "got unexpected extra argument"),
        (["--frob"], "no such option: --frob"),
        (["run", "--engine", "lokal", "f"], "invalid value for '--engine': 'lokal' is not one of"),
        (["run", "--format", "xml", "f"], "invalid value for '--format': 'xml' is not one of"),
        (["shell", "--engine", ""], "invalid value for '--engine': '' is not one of"),
        (["check"], "missing argument 'FILE'"),
        (["doctor", "--checkpoint"], "option '--checkpoint' requires an argument"),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith(f"error: {message}"), "the rest is Typer's, and changes"
    assert second.startswith("help: millstream")


@pytest.mark.parametrize("arguments", [["--help"], ["explain", "--help"], ["-h"], []])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("Usage: millstream")
    assert out.count("\n    millstream ") >= 2, "two real examples"


# --- other forms ----------------------------------------------------------------------------------


def test_as_a_graph(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + """SELECT 'a "b" \\\\ c' AS text FROM Bid WHERE auction = 1;""")
    assert run(["explain", "--dot", str(file)]) == 0
    assert capsys.readouterr() == (GRAPH, "")


def test_the_physical_plan_as_a_graph(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + QUERY)
    assert run(["explain", "--dot", "--physical", "--engine", "local", str(file)]) == 0
    out, _ = capsys.readouterr()
    assert "n1 -> n0;" in out
    assert "pattern=WEAKEST" in out


def test_the_physical_plan(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + "SELECT price FROM Bid")
    assert run(["explain", "--physical", "--engine", "local", str(file)]) == 0
    out, err = capsys.readouterr()
    assert re.sub(r" id=[0-9a-f]{8}$", "", out, flags=re.MULTILINE) == (
        "Map columns=[Bid.price]\n  Source stream=Bid\n\n"
        "Map columns=[Bid.price] pattern=WEAKEST emits=[+]\n"
        "  Source stream=Bid pattern=WEAKEST emits=[+]\n"
    )
    assert not err


def test_verbose(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + "SELECT price FROM Bid")
    assert run(["explain", "--verbose", "--engine", "local", str(file)]) == 0
    out, _ = capsys.readouterr()
    head = "query query_1\nSELECT price FROM Bid\ncolumns (price DOUBLE)\nemit FINAL\n\n"
    assert out.startswith(head + "Map columns=[Bid.price]\n  Source stream=Bid\n\nMap ")


def test_verbose_shows_what_each_rule_made_of_the_plan(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        STREAM + "SELECT COUNT(*) AS n FROM Bid WINDOW(RANGE 5 SECONDS) WHERE auction = 1"
    )
    assert run(["explain", "--verbose", "--engine", "local", str(file)]) == 0
    plans = capsys.readouterr().out.split("\n\n")
    assert [plan.splitlines()[0] for plan in plans[2:-1]] == [
        "after push_filters", "after prune_columns",
    ]  # fmt: skip


def test_spark_has_fragments(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without Spark itself."""
    file.write_text(STREAM + QUERY)
    assert run(["explain", "--physical", str(file)]) == 0
    assert "Fragment" in capsys.readouterr().out


@pytest.mark.parametrize("others", [["--json", "--dot"], ["--verbose", "--json"]])
def test_forms_that_exclude_each_other(
    others: list[str], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(STREAM + QUERY)
    assert run(["explain", *others, str(file)]) == 2
    assert capsys.readouterr().err.startswith("error: --")


def test_parameters(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + "SELECT price FROM Bid WHERE auction = :wanted")
    assert run(["explain", "--param", "wanted=7", str(file)]) == 0
    assert "Filter where=Bid.auction = 7" in capsys.readouterr().out
    assert run(["explain", str(file)]) == 1
    assert 'parameter ":wanted" has no value' in capsys.readouterr().err
    assert run(["explain", "--param", "wanted", str(file)]) == 2
    assert capsys.readouterr().err == (
        'error: "wanted" is not a parameter\nhelp: write --param name=value\n'
    )


def test_a_parameter_that_is_not_there(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(STREAM + "SELECT price FROM Bid WHERE auction = :wanted")
    for command in ("explain", "check", "run"):
        assert run([command, "--param", "wantde=7", str(file)]) == 2
        assert capsys.readouterr() == (
            "",
            'error: no statement has a parameter ":wantde"\nhelp: did you mean "wanted"?\n',
        )
    assert run(["check", "--param", "wanted=7", "--param", "b=2", str(file)]) == 2
    assert capsys.readouterr().err.endswith('parameter ":b"\nhelp: leave it out\n')
    file.write_text("SELECT 'open")
    assert run(["check", "--param", "wanted=7", str(file)]) == 1
    assert "--> auction.sql:1:8" in capsys.readouterr().err


# --- how fast -------------------------------------------------------------------------------------

HEAVY = ("numpy", "pyarrow", "sqlglot", "numba", "pyspark", "pandas", "rich", "prompt_toolkit")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"], []])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys, time; from millstream.cli.main import run_command\n"
        f"code = run_command({arguments!r})\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "print(code, loaded, time.process_time(), file=sys.stderr)"
    )
    least = 1.0
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        code, loaded, seconds = done.stderr.decode().rsplit(maxsplit=2)[-3:]
        assert (code, loaded) == ("0", "[]")
        least = min(least, float(seconds))
    assert least < 0.3, "of the processor; a busy machine takes longer, also of that"


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
    """`millstream explain … | head -1`: no traceback when the pipe is closed."""
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
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert done.stderr.startswith(b'error: stream "Nowhere" does not exist')
