"""Private folders: a checkpoint holds the user's rows and determines the query's next answers.

Nothing in it is executed: plans, states and rows are data. New folders have mode 0700 and new files
0600. An existing folder keeps its mode. It must belong to the user or to root, and must not be
writable by every user, because someone else could otherwise have changed it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

from millstream.model.errors import QueryError

FOLDER_MODE, FILE_MODE = 0o700, 0o600

_LONGEST_NAME = 255  # bytes, on most file systems
_PART_OF_NAME = 120


class CheckpointError(QueryError):
    """A checkpoint that cannot be used: damaged, of another query, or in use."""


def file_name(name: str, reserved: str = ".draft") -> str:
    """The user's name as the name of a file or folder. The result is never "." or "..", does not
    end with `reserved`, and is not too long.

    >>> file_name("a/b"), file_name(".."), file_name("x.draft")
    ('a%2Fb', '%2E%2E', 'x%2Edraft')
    """
    quoted = quote(name, safe="")
    if quoted in (".", "..") or quoted.endswith(reserved):
        quoted = quoted.replace(".", "%2E")
    if len(quoted) > _LONGEST_NAME:
        quoted = f"{quoted[:_PART_OF_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:40]}"
    return quoted


def private_folder(folder: Path, what: str) -> None:
    """Create a folder, or check that the existing one is safe to use; `what` names it in
    messages."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(FOLDER_MODE, exist_ok=True)
        found = folder.stat()
    except (FileExistsError, NotADirectoryError):
        paths = (folder, *folder.parents)
        obstacle = next(path for path in paths if os.path.lexists(path))
        raise CheckpointError(
            f'{what} "{folder}" cannot be created: "{obstacle}" is not a folder',
            help="name a folder; it is created if it does not exist",
        ) from None
    except OSError as error:
        raise CheckpointError(
            f'{what} "{folder}" cannot be created: {error.strerror}',
            help="name a folder that you may write to",
        ) from error
    _check_access(folder, found, what)


def _check_access(folder: Path, found: os.stat_result, what: str) -> None:
    """Refuse a folder to which someone else may have added files."""
    is_foreign = found.st_uid not in (os.geteuid(), 0)
    is_open = bool(found.st_mode & stat.S_IWOTH)
    if not is_foreign and not is_open:
        return
    made = _new_file_in(folder)
    if is_foreign and (made is None or made.st_uid != found.st_uid):
        raise CheckpointError(
            f'{what} "{folder}" belongs to another user',
            help="its owner could change the answers: use a folder of your own",
        )
    if is_open and (made is None or not made.st_mode & stat.S_IWOTH):
        raise CheckpointError(
            f'{what} "{folder}" is writable by every user',
            help="any of them could change the answers: if you trust its contents, run "
            f'"chmod -R go-w {folder}"; or name a folder inside it that does not exist yet',
        )


def _new_file_in(folder: Path) -> os.stat_result | None:
    """How a new private file looks there. File systems that map all users to one, such as NFS with
    squashed users, show another owner; those without modes show files that are open to all."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno())
    except OSError:
        return None


def new_file(path: str, flags: int) -> int:
    """Open a file, for `open(opener=…)`; a new one is private to its owner."""
    return os.open(path, flags, FILE_MODE)
