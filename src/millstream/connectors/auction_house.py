"""A random history of an auction house, drawn from a seed: the numbers behind `nexmark`.

People, auctions and bids are numbered from 0; each property is one array. Every array draws its own
random numbers, so it does not depend on which others were computed.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FOUNDERS = 20  # one person in 20 is there from the start, and at least two people
SPELL = 100  # instants in a busy or calm spell
LONGEST_PART = 4  # an auction lasts at most a quarter of the history


@dataclass(frozen=True)
class AuctionHouse:
    """People register, put items up for auction and bid; times are microseconds."""

    seed: int
    bids: int
    auctions: int
    people: int
    start: int
    rate: float  # bids per second, on average
    burst: float  # bids per instant, on average
    longest: int  # every auction is shorter than this

    def draw(self, purpose: str, count: int) -> Floats:
        """Random numbers in [0, 1), independent of those drawn for any other purpose."""
        entropy = [self.seed, zlib.crc32(purpose.encode())]
        return np.random.Generator(np.random.PCG64(entropy)).random(count)

    def choose(self, purpose: str, count: int, choices: Integers | int) -> Integers:
        """Random integers below `choices`, which may differ per draw."""
        return (self.draw(purpose, count) * choices).astype(np.int64)

    # --- time and people --------------------------------------------------------------------------

    @cached_property
    def duration(self) -> int:
        """Approximate length of the whole history."""
        return math.ceil(max(self.bids, self.auctions, self.people, 1) / self.rate * 1e6)

    @cached_property
    def instants(self) -> Integers:
        """The instants at which something happens, ascending, all after the start."""
        count = math.ceil(max(self.bids, 1) / self.burst)
        calm = np.exp(2 * self.draw("spells", count // SPELL + 1))
        gaps = -np.log1p(-self.draw("gaps", count)) * np.repeat(calm, SPELL)[:count]
        passed = np.cumsum(gaps)
        scaled = passed * (self.duration / max(float(passed[-1]), 1e-9))
        return self.start + 1 + scaled.astype(np.int64) + np.arange(count)

    @cached_property
    def registered(self) -> Integers:
        """When each person registers, ascending."""
        founders = min(self.people, max(2, self.people // FOUNDERS))
        later = self.choose("registrations", self.people - founders, len(self.instants))
        return np.concatenate([np.full(founders, self.start), np.sort(self.instants[later])])

    def _people_before(self, times: Integers) -> Integers:
        return np.searchsorted(self.registered, times, "left")

    # --- auctions, in the order of opening --------------------------------------------------------

    @cached_property
    def _longest(self) -> int:
        return max(2, min(self.longest, self.duration // LONGEST_PART))

    @cached_property
    def _openings(self) -> Integers:
        """The index of the instant at which each auction opens, ascending."""
        latest = self.instants[0] + self.duration - self._longest
        choices = max(1, int(np.searchsorted(self.instants, latest)))
        return np.sort(self.choose("openings", self.auctions, choices))

    @cached_property
    def opened(self) -> Integers:
        return self.instants[self._openings]

    @cached_property
    def closed(self) -> Integers:
        return self.opened + 1 + self.choose("durations", self.auctions, self._longest - 1)

    @cached_property
    def sellers(self) -> Integers:
        return self.choose("sellers", self.auctions, self._people_before(self.opened))

    @cached_property
    def start_prices(self) -> Integers:
        return 1 + self.choose("starting prices", self.auctions, 200)

    # --- bids, by auction and within an auction in the order of time ------------------------------

    @cached_property
    def _bids(self) -> tuple[Integers, Integers]:
        """The auction of each bid and the index of its instant."""
        popularity = np.cumsum(-np.log1p(-self.draw("popularity", self.auctions)))
        target = np.sort(self.draw("auctions of bids", self.bids)) * popularity[-1:].sum()
        auction = np.minimum(np.searchsorted(popularity, target, "right"), self.auctions - 1)
        code = auction * len(self.instants) + self._bid_instants(auction)
        code.sort()
        auction, instant = np.divmod(code, len(self.instants))
        return auction, instant

    def _bid_instants(self, auction: Integers) -> Integers:
        """An instant for each bid, within its auction and near a moment that is specific to the
        auction."""
        first = self._openings[auction]
        last = np.searchsorted(self.instants, self.closed, "left")[auction] - 1
        interest = np.concatenate([[0.0], np.cumsum(self.draw("interest", len(self.instants)))])
        moment = self.draw("moments", self.auctions)[auction]
        distance = self.draw("places", self.bids) - moment
        place = moment + distance * self.draw("nearness", self.bids)
        begin, end = interest[first], interest[last + 1]
        found: Integers = np.searchsorted(interest, begin + place * (end - begin), "right") - 1
        return np.maximum(first, np.minimum(last, found))

    @cached_property
    def bid_auctions(self) -> Integers:
        return self._bids[0]

    @cached_property
    def bid_times(self) -> Integers:
        return self.instants[self._bids[1]]

    @cached_property
    def bid_prices(self) -> Integers:
        raised: Integers = np.concatenate(
            [[0], np.cumsum(1 + self.choose("raises", self.bids, 25))]
        )
        base: Integers = self.start_prices - raised[self._bids_before[:-1]]
        return base[self.bid_auctions] + raised[1:]

    @cached_property
    def bidders(self) -> Integers:
        choices = self._people_before(self.bid_times)
        chosen = self.choose("bidders", self.bids, choices)
        return np.where(chosen == self.sellers[self.bid_auctions], (chosen + 1) % choices, chosen)

    @cached_property
    def _bids_before(self) -> Integers:
        """How many bids precede those of each auction, followed by the total."""
        return np.searchsorted(self.bid_auctions, np.arange(self.auctions + 1))

    # --- how auctions end -------------------------------------------------------------------------

    @cached_property
    def has_bids(self) -> npt.NDArray[np.bool_]:
        return np.diff(self._bids_before) > 0

    @cached_property
    def closing_prices(self) -> Integers:
        """The highest bid, or the starting price where there was none."""
        prices = self.start_prices.copy()
        prices[self.has_bids] = self.bid_prices[self._bids_before[1:][self.has_bids] - 1]
        return prices

    @cached_property
    def buyers(self) -> Integers:
        """The highest bidder; -1 where there was none."""
        buyers = np.full(self.auctions, -1)
        buyers[self.has_bids] = self.bidders[self._bids_before[1:][self.has_bids] - 1]
        return buyers
