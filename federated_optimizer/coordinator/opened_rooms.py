"""The rooms of a coordinator: parts of its interface that stand for themselves."""

from typing_extensions import override

from federated_optimizer.coordinator.checked.checked_rooms import CheckedGrants
from federated_optimizer.coordinator.contract.audit_model import Audit
from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi, RowQuestions
from federated_optimizer.coordinator.contract.cost_model import CostsApi
from federated_optimizer.coordinator.contract.grant_model import GrantsApi
from federated_optimizer.coordinator.contract.lake_model import LakeApi
from federated_optimizer.coordinator.contract.network_model import (
    MOST_NODES,
    IndexReport,
    Network,
)
from federated_optimizer.coordinator.contract.principal import LOCAL
from federated_optimizer.coordinator.contract.sink_model import SinkApi
from federated_optimizer.coordinator.explaining.explaining_rows import RowExplanations
from federated_optimizer.coordinator.explaining.shown_network import shown_network
from federated_optimizer.coordinator.facts.calibrated_costs import CalibratedCosts
from federated_optimizer.coordinator.fleet.fleet import Fleet
from federated_optimizer.coordinator.grants.grant_changes import GrantChanges
from federated_optimizer.coordinator.queries.computation_check import check_computations
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sinks.sinks import Sinks
from federated_optimizer.coordinator.tables.lake_requests import LakeRequests
from federated_optimizer.coordinator.trials.history_trials import HistoryTrials
from federated_optimizer.coordinator.trials.source_trials import SourceTrials


class OpenedRooms(CoordinatorApi):
    """A coordinator that has made its rooms."""

    _shared: SharedParts
    _rows: RowExplanations
    _trials: SourceTrials
    _past: HistoryTrials
    _lake: LakeRequests
    _sinks: Sinks
    _grants: GrantChanges
    _fleet: Fleet
    _queries: Queries

    @property
    @override
    def rows(self) -> RowQuestions:
        return self._rows

    @property
    @override
    def trials(self) -> SourceTrials:
        return self._trials

    @property
    @override
    def past(self) -> HistoryTrials:
        return self._past

    @property
    @override
    def lake(self) -> LakeApi:
        return self._lake

    @property
    @override
    def costs(self) -> CostsApi:
        return CalibratedCosts(self._shared)

    @property
    @override
    def sinks(self) -> SinkApi:
        return self._sinks

    @property
    @override
    def grants(self) -> GrantsApi:
        return CheckedGrants(self._shared, self._grants, LOCAL)

    @property
    @override
    def audit(self) -> Audit:
        return self._shared.audit

    @property
    @override
    def fleet(self) -> Fleet:
        return self._fleet

    @override
    def network(self, most: int = MOST_NODES) -> Network:
        return shown_network(self._queries.runs.network, self._queries.runs.leader, most=most)

    @override
    async def check_network(self, *, rebuild: bool = False) -> IndexReport:
        return await check_computations(self._shared, self._queries, rebuild=rebuild)
