"""Constants of the optimizer as one principal may see and set them."""

from collections.abc import Mapping

from typing_extensions import override

from federated_optimizer.coordinator.contract.audit_model import Audit, Outcome
from federated_optimizer.coordinator.contract.cost_model import CostConstant, CostsApi, Measured
from federated_optimizer.coordinator.contract.principal import Principal
from federated_optimizer.coordinator.rights.statement_roles import check_action
from streamsql.errors import FederationError

_CALIBRATE = "calibrate"


class CheckedCosts(CostsApi):
    """What changes constants, or sends messages, is for operators and stands in the audit."""

    def __init__(self, costs: CostsApi, audit: Audit, principal: Principal) -> None:
        self._costs, self._audit, self._principal = costs, audit, principal

    @override
    def all(self) -> tuple[CostConstant, ...]:
        check_action("look at costs", self._principal)
        return self._costs.all()

    @override
    async def calibrate(
        self, values: Mapping[str, Measured], place: str
    ) -> tuple[CostConstant, ...]:
        self._check(place)
        found = await self._costs.calibrate(values, place)
        self._audit.note(self._principal, _CALIBRATE, place, Outcome.DONE, ", ".join(values))
        return found

    @override
    async def forget(self) -> int:
        self._check("")
        count = await self._costs.forget()
        self._audit.note(self._principal, _CALIBRATE, "", Outcome.DONE, "back to the defaults")
        return count

    @override
    async def hops(self, rounds: int) -> tuple[float, ...]:
        self._check("")
        return await self._costs.hops(rounds)

    def _check(self, place: str) -> None:
        try:
            check_action(_CALIBRATE, self._principal)
        except FederationError as error:
            self._audit.note(self._principal, _CALIBRATE, place, Outcome.REFUSED, error.message)
            raise
