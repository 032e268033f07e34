"""Constants of the optimizer: shown, calibrated, kept in the catalog, and timed over the broker."""

import asyncio
import secrets
from collections.abc import Iterator, Mapping

from typing_extensions import override

from federated_optimizer.coordinator.contract.cost_model import CostConstant, CostsApi, Measured
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.stored_facts import store_facts
from federated_optimizer.statistics.calibrated_constants import (
    CONSTANTS,
    EVERYWHERE,
    PLACES,
    SPARK,
    TIMED,
    Key,
    calibrated,
    refused,
    subject_of,
    words_of,
)
from federated_optimizer.statistics.default_facts import Default
from federated_optimizer.statistics.fact import Fact, Origin, SubjectKind
from streamsql.errors import BindingError


class CalibratedCosts(CostsApi):
    """The constants of one federation.

    Args:
        shared: Its facts, its catalog and its broker.
    """

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared

    @override
    def all(self) -> tuple[CostConstant, ...]:
        return tuple(self._shown())

    def _shown(self) -> Iterator[CostConstant]:
        facts = self._shared.facts
        for name, default in CONSTANTS.items():
            for place in PLACES:
                subject, quantity = subject_of(name, place)
                fact = facts.find(subject, quantity)
                if place == EVERYWHERE or (fact is not None and subject.part == place):
                    yield _constant(name, words_of(name, place), place, default, fact)
        for name, default in SPARK.items():
            yield _constant(name, words_of(name), EVERYWHERE, default, facts.find(*TIMED[name]))

    @override
    async def calibrate(
        self, values: Mapping[str, Measured], place: str
    ) -> tuple[CostConstant, ...]:
        self._shared.presence.check_in_charge()
        now = self._shared.clock()
        for name, measured in values.items():
            reason = refused(name, place, measured.value, measured.low, measured.high)
            if reason:
                raise BindingError(
                    reason, hint="pando calibrate measures the constants", code="bad_option"
                )
        facts = [calibrated(name, place, *measured, now) for name, measured in values.items()]
        await self._keep({fact.key: fact for fact in facts if not self._is_timed(fact.key)})
        return self.all()

    def _is_timed(self, key: Key) -> bool:
        known = self._shared.facts.find(*key)
        return known is not None and known.origin == Origin.TIMED

    @override
    async def forget(self) -> int:
        self._shared.presence.check_in_charge()
        engines = self._shared.facts.of_kind(SubjectKind.ENGINE)
        gone = {fact.key: None for fact in engines if fact.origin == Origin.CALIBRATED}
        await self._keep(gone)
        return len(gone)

    async def _keep(self, changes: Mapping[Key, Fact | None]) -> None:
        """Save at once: nobody measures these again while queries run."""
        if not changes:
            return
        await asyncio.to_thread(store_facts, self._shared.store, changes)
        for key, fact in changes.items():
            if self._is_timed(key):
                continue  # told by the static engine while this was saved
            if fact is None:
                self._shared.facts.discard(*key)
            else:
                self._shared.facts.put(fact)
        self._shared.facts.saved(changes)

    @override
    async def hops(self, rounds: int) -> tuple[float, ...]:
        shared = self._shared
        # Commands are the coordinator's to give, and it reads everything: no right is added.
        topic = shared.topics.command(shared.settings.host, f"hop-{secrets.token_hex(8)}")
        return await shared.broker.round_trips(shared.client, topic, rounds)


def _constant(
    name: str, words: str, place: str, default: Default, fact: Fact | None
) -> CostConstant:
    if fact is None:
        low, high, why = default.low, default.high, default.why
        value = default.value
        return CostConstant(name, words, place, value, low, high, value, None, why)
    numbers = (fact.value, fact.low, fact.high)
    return CostConstant(name, words, place, *numbers, default.value, fact.at, str(fact.origin))
