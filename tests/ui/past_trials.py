"""Trials on history that a test fills by hand."""

from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from federated_optimizer.coordinator.contract.history_model import (
    HistoryTrialInfo,
    HistoryTrialsApi,
    PastChange,
)


class FakePast(HistoryTrialsApi):
    """Trials by id, with what they have given."""

    def __init__(self) -> None:
        self.infos: dict[str, HistoryTrialInfo] = {}
        self.given: dict[str, list[PastChange]] = {}

    def put(self, info: HistoryTrialInfo, *changes: PastChange) -> None:
        """Add a trial, or replace it."""
        self.infos[info.id] = replace(info, events=len(changes))
        self.given[info.id] = list(changes)

    @override
    def all(self) -> tuple[HistoryTrialInfo, ...]:
        return tuple(self.infos.values())

    @override
    def info(self, trial_id: str) -> HistoryTrialInfo:
        return self.infos[trial_id]

    @override
    def changes(self, trial_id: str, since: int, most: int) -> Sequence[PastChange]:
        return self.given[trial_id][since : since + most]

    @override
    async def stop(self, trial_id: str) -> HistoryTrialInfo:
        self.infos[trial_id] = replace(self.infos[trial_id], done=True, problem="it was stopped")
        return self.infos[trial_id]
