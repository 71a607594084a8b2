"""The thread of a running query: it sleeps until rows arrive, then runs a round."""

from __future__ import annotations

import threading
from collections.abc import Callable

from millstream.model.errors import QueryError
from millstream.runtime.clock import Clock
from millstream.runtime.inbox import Inbox
from millstream.runtime.inputs import Input
from millstream.runtime.rounds import Rounds

COMPANY = 250_000  # microseconds that a round waits for streams that usually arrive together


class Worker:
    """`moved` signals that the frontier moved or the query ended; `done`, that it ended."""

    def __init__(self, rounds: Rounds, inbox: Inbox, clock: Clock) -> None:
        self._rounds = rounds
        self._inbox = inbox
        self._clock = clock
        self.moved = threading.Condition()
        self.done = threading.Event()

    def start(self, at_end: Callable[[], None]) -> None:
        def run() -> None:
            try:
                self._run()
            finally:
                at_end()
                self.done.set()
                with self.moved:
                    self.moved.notify_all()

        name = f"millstream {self._rounds.query}"
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._inbox.owner = thread
        thread.start()

    def _run(self) -> None:
        rounds = self._rounds
        try:
            rounds.resume()
            while not rounds.over and (ready := self._await()) is not None:
                rounds.run(ready)
                with self.moved:
                    self.moved.notify_all()
            rounds.end()
        except BaseException as error:  # including SystemExit: waiting threads must be woken
            rounds.fail(error)
        self.part()
        try:
            rounds.delivery.close()
        except QueryError as error:
            rounds.fail(error)

    def part(self) -> None:
        """Detach from producers and close the operators."""
        self._rounds.accept_no_more()
        for input in self._rounds.inputs:
            input.detach()
        self._rounds.executor.close()

    def _await(self) -> list[Input] | None:
        """The inputs with rows, empty if the clock moves the query; None at the end."""
        rounds = self._rounds
        company: int | None = None  # until when to wait for others
        with self._inbox.lock:
            while True:
                ready = [input for input in rounds.inputs if input.ready]
                if rounds.is_due:
                    rounds.is_due = False
                    return ready
                if self._inbox.stopping:
                    return ready or None
                if rounds.is_over():
                    return None
                missing: list[Input] = []
                until = rounds.due if ready else rounds.next_look()
                if ready:
                    missing = [
                        input for input in rounds.inputs if input.in_step and not input.ready
                    ]
                if missing:
                    company = company or self._clock.ticks() + COMPANY
                    until = max(rounds.due, company)
                if until is not None and until <= self._clock.ticks():
                    for input in missing:
                        input.in_step = False
                    return ready
                self._clock.wait(self._inbox.work, until)

    def await_frontier(self, instant: int, timeout: float | None) -> bool:
        """Wait until an instant is final; False if it does not become final."""

        def passed() -> bool:
            return self._rounds.executor.frontier > instant or self.done.is_set()

        if threading.current_thread() is not self._inbox.owner:
            with self._inbox.lock:
                self._inbox.work.notify_all()  # the clock may advance the query
            with self.moved:
                self.moved.wait_for(passed, timeout)
        return self._rounds.executor.frontier > instant

    @property
    def is_own_thread(self) -> bool:
        return threading.current_thread() is self._inbox.owner
