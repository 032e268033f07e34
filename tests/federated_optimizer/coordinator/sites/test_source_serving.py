"""Whose rows of a declared source are missing, and why: from what gateways say of themselves."""

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Freshness, SiteInfo
from federated_optimizer.coordinator.sites.source_serving import missing_rows
from streamsql.wire.site_messages import DeclaredState, EndpointState, SiteRole, SiteState
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE climate (device TEXT, t DOUBLE, KEY (device)) "
    "WITH (connector = 'mqtt', endpoint = 'home', topic = 'm/{device}')"
)
VERSION = next(s.version for s in CATALOG.sources if s.name == "climate")
HOME = EndpointState("home", "mqtt")


def gateway(*endpoints: EndpointState, told: DeclaredState | None = None) -> SiteInfo:
    declared = () if told is None else (told,)
    state = SiteState(online=True, epoch=1, ts=1, endpoints=endpoints, declared=declared)
    return SiteInfo("gw-1", SiteRole.GATEWAY, True, Freshness.LIVE, 1, 1, state=state)


@pytest.mark.parametrize(
    ("site", "missing"),
    [
        (gateway(HOME, told=DeclaredState("climate", VERSION)), {}),
        (gateway(HOME, told=DeclaredState("climate", VERSION, "no broker")), {"gw-1": "no broker"}),
        # The next state tells; until then nobody may take the answer for whole.
        (gateway(HOME), {"gw-1": "has not reported it yet"}),
        (gateway(EndpointState("plant", "mqtt")), None),
    ],
    ids=["served", "problem", "untold", "for others"],
)
def test_missing_rows(site: SiteInfo, missing: dict[str, str] | None) -> None:
    found = missing_rows(CATALOG, [site])["climate"]
    if missing is None:
        assert "gw-1" not in found
    else:
        assert found == missing
