"""The process of a keeper: it serves tasks until its executor exits or it receives a stop request.

python -m millstream.spark.keeper_process <folder>/<place>.query <process of the executor>
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from multiprocessing.connection import Listener, wait
from pathlib import Path

from millstream.checkpoint.files import LocalFiles
from millstream.fragments.failures import failure_data
from millstream.fragments.keeping import Keeper, Order
from millstream.fragments.messages import packed_messages, unpacked_messages
from millstream.model.codec import packed, unpacked
from millstream.spark.keepers import KeptQuery, clear_up

_LOOK = 1.0  # seconds between checks that the executor is alive


def serve(told: Path, executor: int) -> None:
    query = KeptQuery.of(told.read_bytes())
    keeper = Keeper(query.work, LocalFiles(query.root, query.durable))
    with Listener(str(told.with_suffix("")), "AF_UNIX") as listener:
        socket = listener._listener._socket  # type: ignore[attr-defined]
        while _is_alive(executor):
            if wait([socket], _LOOK) and not _answered(keeper, listener):
                break
    clear_up(told)


def _answered(keeper: Keeper, listener: Listener) -> bool:
    """Serve one request; False if the keeper must stop."""
    with suppress(OSError, EOFError), listener.accept() as task:
        request = task.recv_bytes()
        if not request:
            return False
        task.send_bytes(packed(_outcome(keeper, request)))
    return True


def _outcome(keeper: Keeper, request: bytes) -> dict[str, object]:
    try:
        level, order, messages = unpacked(request)
        given = keeper.level(Order.of(order), level, unpacked_messages(messages))
        return {"messages": packed_messages(list(given))}
    except Exception as error:  # the task raises it, with its message
        return {"failure": failure_data(error)}


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
