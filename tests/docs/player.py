"""Plays the blocks of a document as a reader would, in a folder of its own.

All Python blocks of a document are one program, and SQL blocks go to its `session`. Commands and
statements are shown what a terminal shows: answers as tables, and messages among them.
"""

from __future__ import annotations

import io
import re
import runpy
import shlex
import sys
import tomllib
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import millstream as ms
from docs.document import ROOT, Block
from millstream.cli.main import run_command
from millstream.cli.reading import bound
from millstream.cli.shell import Shell

PROMPT, CONTINUED = "millstream> ", "        ... "


class Screen(io.StringIO):
    """What a person sees; only progress bars are left out, because stderr is no terminal."""

    def isatty(self) -> bool:
        return True


class Player:
    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def play(self, block: Block) -> dict[int, str]:
        """Run a block; what its own text and that of its output should be, by their lines."""
        if block.not_run is not None:
            return {}
        if block.file is not None:
            assert f"`{block.file}`" in block.before, f"{block.where}: say that it is {block.file}"
            file = Path(block.file)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
            return {}
        match block.language:
            case "python":
                return self._printed(block, self._python(block))
            case "sql" if block.output is not None:
                return self._printed(block, self._statements(block))
            case "sql":
                self._bind(block)
            case "sh":
                for line in block.text.splitlines():
                    self._command(line)
            case "console":
                return {block.line: self._console(block.text)}
            case "text":
                pass
            case other:
                raise AssertionError(f"{block.where}: nobody runs {other}")
        return {}

    def end(self) -> None:
        """Stop what the document left running."""
        for value in list(self.names.values()):
            if isinstance(value, ms.Session):
                for query in value.queries.values():
                    if query.running is not None:
                        query.running.stop()
                for view in value._state.kept.all:
                    view.stop()

    @property
    def session(self) -> ms.Session:
        session: ms.Session = self.names.setdefault("session", ms.Session())
        return session

    def _printed(self, block: Block, text: str) -> dict[int, str]:
        if block.output is None:
            assert text == "", f"{block.where} prints what is not shown:\n{text}"
            return {}
        return {block.output.line: text}

    # --- programs and statements -----------------------------------------------------------------

    def _python(self, block: Block) -> str:
        program = compile("\n" * (block.line - 1) + block.text, "document", "exec")
        return shown(exec, program, self.names)

    def _statements(self, block: Block) -> str:
        return shown(Shell(self.session, {}).run, block.text)

    def _bind(self, block: Block) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.session.run_script(block.text)

    # --- commands --------------------------------------------------------------------------------

    def _console(self, text: str) -> str:
        """The text with what its commands print now."""
        played = ""
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            played += f"$ {command}\n"
            if command.startswith("millstream shell"):
                played += _shell(shlex.split(command)[2:], printed)
            else:
                played += self._command(command)
        return played

    def _command(self, line: str) -> str:
        """Run a command; what it prints. What sets up a machine is looked at, and not done."""
        program, *arguments = shlex.split(line, comments=True) or [""]
        match program:
            case "millstream":
                return shown(run_command, arguments)
            case "python" if arguments[0] != "-m":
                with mock.patch.object(sys, "argv", arguments):
                    return shown(runpy.run_path, _program(arguments[0]), run_name="__main__")
            case "make":
                assert re.search(f"^{arguments[0]}:", _own("Makefile"), re.MULTILINE), line
            case "pip":
                for extra in re.findall(r"\[([\w,]+)\]", line):
                    optional = tomllib.loads(_own("pyproject.toml"))["project"]
                    assert set(extra.split(",")) <= set(optional["optional-dependencies"]), line
            case "" | "cd" | "git" | "python" | "python3" | "." | "source":
                pass
            case _:
                raise AssertionError(f"nobody runs {program}")
        return ""


def _program(name: str) -> str:
    """A program that the document has shown, or one of the repository's."""
    return name if Path(name).exists() else str(ROOT / name)


def _own(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def shown(function: Any, *arguments: Any, **options: Any) -> str:
    """What a call shows on the screen, messages among the answers."""
    screen = Screen()
    messages = io.StringIO()
    messages.write = screen.write  # type: ignore[method-assign]
    with redirect_stdout(screen), redirect_stderr(messages), warnings.catch_warnings():
        function(*arguments, **options)
    return screen.getvalue()


def _shell(arguments: list[str], dialogue: str) -> str:
    """A dialogue with the shell, with the answers that it gives now."""
    session = bound(arguments[0], "local", [])[0] if arguments else ms.Session(engine="local")
    shell = Shell(session, {})
    played = ""
    typed = re.compile(rf"^{PROMPT}.*\n(?:{re.escape(CONTINUED)}.*\n)*", re.MULTILINE)
    for entered in typed.findall(dialogue):
        text = "".join(line[len(PROMPT) :] for line in entered.splitlines(keepends=True))
        played += entered + shown(shell.run, text)
    shell.end()
    return played
