"""A program in a pseudo-terminal: what it shows, and what is typed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

_OWN = ("COLUMNS", "LINES", "XDG_STATE_HOME")  # what the tests' environment says of itself
# What steers the terminal: colours, the cursor, the screen, titles.
_STEERING = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])")


class Terminal:
    """`shown` is all that the program has written since it was last looked for, without what steers
    the terminal."""

    def __init__(
        self, arguments: list[str], home: Path, folder: Path | None, size: tuple[int, int]
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "millstream", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,
            cwd=folder,
            env=_environment(home),
        )
        os.close(slave)
        self.raw = ""
        self._seen = 0

    @property
    def text(self) -> str:
        return _STEERING.sub("", self.raw)

    def expect(self, pattern: str, timeout: float = 240) -> str:
        """What was shown up to a pattern, after what was expected last."""
        until = time.monotonic() + timeout
        while (found := re.compile(pattern).search(self.text, self._seen)) is None:
            if time.monotonic() > until or not self._read():
                raise AssertionError(f"{pattern!r} is not in {self.text[self._seen :][-2000:]!r}")
        shown = self.text[self._seen : found.end()]
        self._seen = found.end()
        return shown

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.type("\x03")

    def end(self, timeout: float = 240) -> int:
        """Read to the end of the program; its exit code."""
        until = time.monotonic() + timeout
        while time.monotonic() < until and self._read():
            pass
        return self.process.wait(max(until - time.monotonic(), 1))

    def hang_up(self) -> None:
        """Close the terminal, as a window is closed."""
        os.close(self._master)
        self._master = -1

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 0.1)
        if not ready:
            return self.process.poll() is None
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            return False
        self.raw += data.decode("utf-8", "replace")
        if "\x1b[6n" in data.decode("utf-8", "replace"):  # where is the cursor?
            self.type("\x1b[1;1R")
        return bool(data)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self._master >= 0:
            os.close(self._master)


def _environment(home: Path) -> dict[str, str]:
    """As in a terminal of a person's own: nothing but the terminal itself tells its size."""
    told = {name: value for name, value in os.environ.items() if name not in _OWN}
    return told | {"HOME": str(home), "TERM": "xterm", "PYTHONUTF8": "1"}


def _take_terminal() -> None:
    """The pseudo-terminal is that of the new session, so that Ctrl-C and hanging up reach it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextlib.contextmanager
def terminal(
    *arguments: str, home: Path, folder: Path | None = None, size: tuple[int, int] = (40, 120)
) -> Iterator[Terminal]:
    opened = Terminal(list(arguments), home, folder, size)
    try:
        yield opened
    finally:
        opened.close()
