"""The command line: `millstream COMMAND …`.

stdout carries data, stderr everything else. Exit 0: fine, 1: the query's fault, 2: usage, 3: ours.
Each command imports what it needs when it runs, so that help is fast.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from enum import StrEnum
from traceback import extract_tb
from typing import Annotated, Any, TextIO

import typer

from millstream.model.errors import MillstreamError, MillstreamWarning
from millstream.model.modes import EngineName

_EXAMPLES = """\
\b
examples:
  millstream demo
  millstream run auction.sql --engine local --format json
  millstream explain --physical auction.sql
"""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help without rich: it takes longer to import than everything else
    context_settings={"help_option_names": ["-h", "--help"]},
)


class LiveEngine(StrEnum):
    SPARK = "spark"
    LOCAL = "local"


class Format(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


File = Annotated[
    str, typer.Argument(metavar="FILE", help="a file of statements, or - for standard input")
]
EngineOption = Annotated[EngineName, typer.Option(help="where queries run")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="a value for :NAME; repeatable"),
]


@app.command(
    epilog="\b\nexamples:\n"
    "  millstream run auction.sql\n"
    "  millstream run --engine local --param least=10 --format json auction.sql"
)
def run(
    file: File,
    engine: EngineOption = EngineName.SPARK,
    format: Annotated[
        Format | None, typer.Option(help="by default a table on a terminal and CSV in a pipe")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="answer for the instants before this one")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="resume from here after a stop or a crash")
    ] = None,
    param: Parameters = None,
) -> int:
    """Run all statements of a file; SELECTs write to stdout, INSERT INTO to its sink.

    Queries over streams that end run to their end, others until Ctrl-C.
    """
    from millstream.cli.run import run as command

    return _guarded(command, file, engine, format, until, checkpoint, param or [])


@app.command(
    epilog="\b\nexamples:\n"
    "  millstream explain auction.sql\n"
    "  millstream explain --dot auction.sql | dot -Tsvg > plan.svg"
)
def explain(
    file: File,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="the statement, its columns, all plans")
    ] = False,
    costs: Annotated[bool, typer.Option("--costs", help="with the estimates")] = False,
    json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="as a graph for Graphviz")] = False,
    physical: Annotated[
        bool, typer.Option("--physical", help="also the operators that run")
    ] = False,
    engine: EngineOption = EngineName.SPARK,
    param: Parameters = None,
) -> int:
    """Print the plan of every query in a file."""
    from millstream.cli.explain import explain as command

    return _guarded(command, file, engine, verbose, costs, json, dot, physical, param or [])


@app.command(
    epilog="\b\nexamples:\n"
    "  millstream check auction.sql\n"
    "  millstream check --param least=10 - < auction.sql"
)
def check(file: File, param: Parameters = None) -> int:
    """Parse and bind all statements of a file; run nothing."""
    from millstream.cli.check import check as command

    return _guarded(command, file, param or [])


@app.command(
    epilog="\b\nexamples:\n  millstream shell\n  millstream shell --engine spark streams.sql"
)
def shell(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="statements to run first")
    ] = None,
    engine: EngineOption = EngineName.LOCAL,
    param: Parameters = None,
) -> int:
    """Type statements and see their answers."""
    from millstream.cli.shell import shell as command

    return _guarded(command, file, engine, param or [])


@app.command(
    epilog="\b\nexamples:\n  millstream demo\n  millstream demo --engine local --seconds 20"
)
def demo(
    engine: Annotated[LiveEngine, typer.Option(help="where queries run")] = LiveEngine.SPARK,
    seconds: Annotated[float, typer.Option(help="how long it runs")] = 60,
) -> int:
    """Watch four continuous queries over an auction house."""
    from millstream.cli.demo import demo as command

    return _guarded(command, EngineName(engine), seconds)


@app.command(
    epilog="\b\nexamples:\n  millstream doctor\n  millstream doctor --checkpoint /var/lib/auction"
)
def doctor(
    checkpoint: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="the checkpoint to verify")
    ] = None,
) -> int:
    """Check this machine, or verify a checkpoint."""
    from millstream.cli.doctor import doctor as command

    return _guarded(command, checkpoint)


@app.command(epilog="\b\nexamples:\n  millstream calibrate\n  millstream calibrate --engine spark")
def calibrate(
    engine: Annotated[LiveEngine, typer.Option(help="the engine to measure")] = LiveEngine.LOCAL,
) -> int:
    """Measure the cost of operations on this machine, for explain --costs; half a minute.

    `--engine spark` measures the overhead of Spark itself: jobs, and rows that are moved.
    """
    from millstream.cli.calibrate import calibrate as command

    return _guarded(command, EngineName(engine))


@app.command()
def version() -> int:
    """Print the version."""
    from millstream import __version__

    return _guarded(print, __version__)


def _tell_version(asked: bool) -> None:
    if asked:
        raise typer.Exit(version())


@app.callback(epilog=_EXAMPLES)
def _millstream(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Continuous SQL queries whose answers are exactly right at every instant."""


# --- from commands to exit codes ------------------------------------------------------------------

_WrongUsage: Any = typer.BadParameter.__mro__[1]  # the base class of Typer's usage errors


class _Ended(BaseException):
    """The terminal was closed, or the process was asked to end."""


def main(arguments: Sequence[str] | None = None) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # the parent process closed it
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    warnings.showwarning = _show_warning
    sys.exit(run_command(arguments))


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run a command, or list the commands; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        command = typer.main.get_command(app)
        code = command.main(given, prog_name="millstream", standalone_mode=False)
    except _WrongUsage as error:
        message = str(error.format_message()).rstrip(".").replace("Value error, ", "")
        print(f"error: {message[:1].lower()}{message[1:]}", file=sys.stderr)
        where = getattr(error.ctx, "command_path", None) or "millstream"
        print(f"help: {where} --help", file=sys.stderr)
        return 2
    return int(code or 0)


def _guarded(command: Callable[..., object], *arguments: object) -> int:
    """The exit code of a command; exceptions become messages."""
    try:
        code = command(*arguments)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except MillstreamError as error:
        from millstream.cli.reading import UsageError

        _tell(str(error))
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except _Ended:
        return 128 + signal.SIGTERM
    except OSError as error:
        # Nothing more can be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno in (errno.EPIPE, errno.EIO):
            return 0  # the reader or the terminal is gone: a message would not be read
        _tell(f"error: {(error.strerror or str(error)).lower()}")
        return 1
    except Exception as error:
        return _internal(error)


def _end(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # only once: an orderly end takes a moment
    raise _Ended


def _internal(error: Exception) -> int:
    place = extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    reason = " ".join(str(error).split())
    _tell(f"error: millstream failed at {where}: {type(error).__name__}: {reason}")
    return 3


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print the warnings of running queries; other warnings are for developers."""
    if issubclass(category, MillstreamWarning):
        _tell(str(message))


def _tell(message: str) -> None:
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:  # stderr is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
