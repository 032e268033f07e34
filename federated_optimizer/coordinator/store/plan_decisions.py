"""Decisions on the plans of running queries: the rows of `sys_decisions`, saved in the catalog."""

import asyncio
import logging
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.stored_decisions import store_decisions
from streamsql.data.types import Row
from streamsql.errors import FederationError

log = logging.getLogger(__name__)

MOST = 1_000
"""Decisions that are remembered; of those that keep a plan at most half, else the newest."""
LONGEST = 500
"""Characters of a text of theirs."""
MOST_QUERIES = 1_000
"""Queries that are named in the row of a decision."""


class Outcome(StrEnum):
    """Outcomes of decisions."""

    MOVING = "moving"
    MOVED = "moved"
    KEPT = "kept"
    GIVEN_UP = "given up"


class Decision(msgspec.Struct, frozen=True):
    """A plan that was looked at again because a fact had left its range.

    Attributes:
        id: Grows.
        ts: When, in microseconds since 1970 UTC.
        queries: Ids, with commas between.
        run: What they read when it was decided.
        reason: The fact that left its range.
        outcome: See `Outcome`.
        detail: Why it came out so.
        plan_before: In words.
        plan_after: The plan that was looked at; the same where no other is much cheaper.
        bytes_before: A second, by estimate.
        bytes_after: The same of the other plan.
        measured_before: Bytes a second that sites have sent; None: not counted long enough.
        measured_after: The same in the minute after the move.
        switch_bytes: Bytes that travelled for the move, as counted.
        switch_seconds: Time until the queries had changed over, or it was given up.
    """

    id: int
    ts: int
    queries: str
    run: str
    reason: str
    outcome: Outcome
    detail: str
    plan_before: str
    plan_after: str
    bytes_before: float
    bytes_after: float
    measured_before: float | None = None
    measured_after: float | None = None
    switch_bytes: int | None = None
    switch_seconds: float | None = None


class Decisions:
    """The newest decisions, oldest first.

    One that was under way when a coordinator ended was given up: its new run was withdrawn.
    """

    def __init__(self, store: CatalogStore, known: Iterable[Decision]) -> None:
        self._store = store
        self._decisions = {decision.id: decision for decision in known}
        self._last = max(self._decisions, default=0)
        self._unsaved: dict[int, None] = {}
        self._rows: tuple[Row, ...] | None = None
        for decision in tuple(self._decisions.values()):
            if decision.outcome == Outcome.MOVING:
                self.change(
                    decision.id, outcome=Outcome.GIVEN_UP, detail="the coordinator was restarted"
                )

    def next_id(self) -> int:
        """Return the number of the next decision."""
        return self._last + 1

    def add(self, decision: Decision) -> None:
        """Remember a decision; the oldest goes where there is no room."""
        self._last = max(self._last, decision.id)
        self._decisions[decision.id] = decision
        self._touch(decision.id)
        while len(self._decisions) > MOST:
            oldest = self._least_needed()
            del self._decisions[oldest]
            self._touch(oldest)
        log.info("%s: %s: %s", decision.queries, decision.outcome, decision.reason)

    def _least_needed(self) -> int:
        """Return the oldest decision, of those that kept a plan if these are more than half."""
        kept = [each.id for each in self._decisions.values() if each.outcome == Outcome.KEPT]
        return kept[0] if len(kept) > MOST // 2 else next(iter(self._decisions))

    def change(self, number: int, **said: object) -> None:
        """Say more of a decision, unless it has gone meanwhile."""
        known = self._decisions.get(number)
        if known is not None:
            self._decisions[number] = msgspec.structs.replace(known, **said)
            self._touch(number)

    def all(self) -> tuple[Decision, ...]:
        """Return the decisions, oldest first."""
        return tuple(self._decisions.values())

    def rows(self) -> tuple[Row, ...]:
        """Return the rows of `sys_decisions`: the same object until something changes."""
        if self._rows is None:
            self._rows = tuple(map(_row, self._decisions.values()))
        return self._rows

    async def keep(self) -> None:
        """Save what is new.

        Raises:
            DeploymentError: The catalog cannot be written; it is tried again with the next call.
        """
        changed = {number: self._decisions.get(number) for number in self._unsaved}
        if not changed:
            return
        self._unsaved.clear()
        try:
            await asyncio.to_thread(store_decisions, self._store, changed)
        except FederationError:
            self._unsaved.update(dict.fromkeys(changed))
            raise

    async def end(self) -> None:
        """Save for the last time."""
        try:
            await self.keep()
        except FederationError as error:
            log.warning("the last decisions are not saved: %s", error.message)

    def _touch(self, number: int) -> None:
        self._unsaved[number] = None
        self._rows = None


def _row(decision: Decision) -> Row:
    shown = tuple(map(_shown, msgspec.structs.astuple(decision)))
    place = Decision.__struct_fields__.index("queries")
    return (*shown[:place], _named(decision.queries), *shown[place + 1 :])


def _named(queries: str) -> str:
    """Return ids as a column shows them: whole ones, so that each can be looked for."""
    ids = queries.split(", ")
    return ", ".join([*ids[:MOST_QUERIES], *["…"] * (len(ids) > MOST_QUERIES)])


def _shown(value: float | str | None) -> float | str | None:
    """Return what a column shows: of a number three digits that count, of a text the beginning."""
    if isinstance(value, str):
        return str(value)[:LONGEST]
    return float(f"{value:.3g}") if isinstance(value, float) else value
