"""Every part of the coordinator's interface asks for the least role that its table names."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from federated_optimizer.coordinator.checked.on_behalf import OnBehalf
from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.principal import Principal, Role
from streamsql.errors import FederationError

READ = "SELECT rid FROM temperature"
ACTIONS: dict[str, tuple[Role, Callable[[Any], Any]]] = {
    "queries": (Role.VIEWER, lambda api: api.queries()),
    "alarms": (Role.VIEWER, lambda api: api.alarms()),
    "definitions": (Role.VIEWER, lambda api: api.definitions()),
    "links": (Role.VIEWER, lambda api: api.links()),
    "sites": (Role.VIEWER, lambda api: api.sites()),
    "network": (Role.VIEWER, lambda api: api.network()),
    "sinks": (Role.VIEWER, lambda api: api.sinks.infos()),
    "validate": (Role.VIEWER, lambda api: api.validate(READ)),
    "session": (Role.VIEWER, lambda api: api.execute("SHOW VIEWS")),
    "settings": (Role.VIEWER, lambda api: api.site_settings("gw-1")),
    "select": (Role.OPERATOR, lambda api: api.execute(READ)),  # nothing is granted
    "query": (Role.OPERATOR, lambda api: api.query("mine")),
    "keep": (Role.OPERATOR, lambda api: api.keep("mine")),
    "explain": (Role.OPERATOR, lambda api: api.explain("mine")),
    "explained": (Role.OPERATOR, lambda api: api.explained("mine")),
    "relation": (Role.OPERATOR, lambda api: api.relation("mine")),
    "subscribe": (Role.OPERATOR, lambda api: api.subscribe("mine")),
    "why": (Role.OPERATOR, lambda api: api.rows.why_row("mine", ["r1"])),
    "confidence": (Role.OPERATOR, lambda api: api.rows.confidence_of_rows("mine", "a.b")),
    "what if": (Role.OPERATOR, lambda api: api.rows.what_if_deleted([("temperature", ["r"])])),
    "costs": (Role.ANALYST, lambda api: api.costs.all()),
    "calibrate": (Role.OPERATOR, lambda api: api.costs.calibrate({}, "")),
    "forget costs": (Role.OPERATOR, lambda api: api.costs.forget()),
    "hops": (Role.OPERATOR, lambda api: api.costs.hops(1)),
    "change": (Role.OPERATOR, lambda api: api.change_site("gw-1", {"share_synopses": True})),
    "remove": (Role.OPERATOR, lambda api: api.remove_gateway("gw-1")),
    "command": (Role.OPERATOR, lambda api: api.command("gw-1", "simulate", {})),
    "listen": (Role.OPERATOR, lambda api: api.trials.listen("gw-1", "home", {})),
    "try": (Role.OPERATOR, lambda api: api.trials.try_statement("gw-1", "CREATE SOURCE x")),
    "discover": (Role.OPERATOR, lambda api: api.trials.discover("gw-1", "home")),
    "trial": (Role.OPERATOR, lambda api: api.trials.info("t")),
    "stop trial": (Role.OPERATOR, lambda api: api.trials.stop("t")),
    "propose": (Role.OPERATOR, lambda api: api.trials.propose("t")),
    "map trial": (Role.OPERATOR, lambda api: api.trials.map("t", READ)),
    "retry": (Role.OPERATOR, lambda api: api.sinks.retry("s")),
    "discard": (Role.OPERATOR, lambda api: api.sinks.discard("s")),
    "stop": (Role.OPERATOR, lambda api: api.stop("mine")),
    "audit": (Role.OPERATOR, lambda api: api.audit.entries()),
    "quotas": (Role.ADMINISTRATOR, lambda api: api.grants.quotas("somebody")),
    "usage": (Role.ADMINISTRATOR, lambda api: api.grants.usage("somebody")),
    "grant": (
        Role.ADMINISTRATOR,
        lambda api: api.execute("GRANT SELECT ON SOURCE temperature TO ROLE operator"),
    ),
}


def test_nothing_of_the_interface_is_left_out() -> None:
    wanted = {name for name in vars(CoordinatorApi) if not name.startswith("_")}
    assert wanted <= set(vars(OnBehalf))


@pytest.mark.parametrize("role", Role)
def test_every_action_needs_its_role(harness: Any, role: Role) -> None:
    async def scenario(federation: Any) -> None:
        whole = await federation.standard(gateways=1)
        await harness.start_query(whole, READ, name="mine")
        mine = whole.on_behalf(Principal("ann", role))
        for action, (least, ask) in ACTIONS.items():
            refused = False
            try:
                found = ask(mine)
                if inspect.isawaitable(found):
                    await found
            except FederationError as error:
                refused = error.code == "not_allowed"
            except KeyError:
                pass  # there is none of it, which only those are told who may ask
            assert refused != role.may_act_as(least), (action, role)

    harness.run(scenario)
