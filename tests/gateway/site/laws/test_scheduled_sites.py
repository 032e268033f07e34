"""A host goes on stepping while changes wait between operators, whatever the schedulers are."""

import pytest

from gateway.testing import SEATS, until
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Filter, Plan, RemoteSource
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.site_settings import SchedulerKind, SiteSettings
from tests.gateway.site.federation import Federation, run

GATEWAYS = ("gw-1", "gw-2")


def deep(plan: Plan, depth: int = 6) -> Plan:
    """Return one operator behind the other, all of which let everything through."""
    for limit in range(depth):
        field = plan.schema.fields[0]
        name = Column(0, field.name, field.dtype)
        bound = Literal(f"a{limit}", field.dtype)
        plan = Filter(plan, Call("<>", (name, bound), DataType.BOOLEAN))
    return plan


def collected() -> FragmentBundle:
    schema = SEATS.schema
    return FragmentBundle(
        "q1",
        1,
        (
            Fragment("f0", Engine.GATEWAY, deep(SEATS.scan()), GATEWAYS, "f1", ("base",)),
            Fragment("f1", Engine.BASE, deep(RemoteSource("f0", schema)), ("base",)),
        ),
        schema,
    )


@pytest.mark.parametrize("scheduler", SchedulerKind)
def test_what_waits_goes_on_by_itself(scheduler: SchedulerKind) -> None:
    async def scenario(federation: Federation) -> None:
        await federation.begin()
        for name in ("base", *GATEWAYS):
            await federation.site(name)
            federation.settings(name, SiteSettings(scheduler=scheduler, slice_ms=1.0))
        federation.install(collected())
        sites = federation.sites
        await until(
            lambda: all(site.engine.settings.slice_ms == 1.0 for site in sites.values()),
            "the settings are in use",
        )
        for number in range(5):
            for name in GATEWAYS:
                sites[name].put(f"{name}-m{number}")
        await federation.until_rows(lambda: federation.expected(*GATEWAYS))
        federation.settings("base", None)
        sites["gw-1"].put("gw-1-m0", delete=True)
        await federation.until_rows(lambda: federation.expected(*GATEWAYS))
        assert sites["base"].engine.settings == SiteSettings()
        assert max(site.engine.queues.peak_rows for site in sites.values()) > 0
        await until(
            lambda: not any(site.engine.queues.batches for site in sites.values()),
            "nothing waits any more",
        )

    run(scenario)
