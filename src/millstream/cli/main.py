"""The command line: `millstream explain FILE.sql`.

stdout carries data, stderr everything else. Exit 0: fine, 1: the query's fault, 2: usage, 3: ours.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from millstream.errors import MillstreamError

_EXAMPLES = """\
examples:
  millstream explain auction.sql
  millstream explain --format json auction.sql
"""


def main(arguments: Sequence[str] | None = None) -> None:
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return _explain(options.file, options.format)
    except BrokenPipeError:
        # The reader went away; there is nobody left to tell, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MillstreamError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="millstream",
        description="Continuous SQL queries whose answers are exactly right at every instant.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    explain = commands.add_parser(
        "explain",
        help="print the plan of every query in a file",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.add_argument("file", help="a file of statements, or - for standard input")
    explain.add_argument("--format", choices=["text", "json"], default="text")
    return parser


def _explain(file: str, format: str) -> int:
    try:
        read = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        text = read.decode("utf-8")
    except UnicodeDecodeError:
        return _usage(f'"{file}" is not a text file in UTF-8')
    except OSError as error:
        return _usage(f'"{file}" cannot be read: {(error.strerror or str(error)).lower()}')
    from millstream.session import Session

    session = Session()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            session.run_script(text, "<stdin>" if file == "-" else file)
        finally:
            for warning in caught:
                print(warning.message, file=sys.stderr)
    plans = [query.explain(format) for query in session.queries.values()]
    if plans:
        print("\n\n".join(plans))
    return 0


def _usage(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2
