"""The position of a running query, besides the state of its operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.physical.batch import State
from millstream.runtime.delivery import Delivery
from millstream.runtime.inputs import Input


@dataclass(frozen=True)
class Position:
    """The positions of its inputs, and what it has delivered."""

    inputs: Sequence[Input]
    delivery: Delivery

    def save(self) -> State:
        inputs = {input.stream.name: input.save() for input in self.inputs}
        return {"inputs": inputs, "delivery": self.delivery.save()}

    def restore(self, state: State) -> None:
        for input in self.inputs:
            input.restore(state["inputs"][input.stream.name])
        self.delivery.restore(state["delivery"])
