"""EXPLAIN names what will keep a recursion, and what does not fit is refused before it runs."""

from typing import Any

import pytest

from deploy.explainer import EngineExplainer
from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from streamsql.errors import UnsupportedError

PAIRS = """WITH RECURSIVE pairs (src, dst) AS (SELECT src, dst FROM link
  UNION SELECT a.src, b.dst FROM pairs a JOIN pairs b ON a.dst = b.src) SELECT * FROM pairs"""
FORCED = PAIRS + " WITH (strategy = 'kernel')"


def test_explain_names_the_kernel_before_anything_runs(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        await federation.site("gw-1")
        coordinator = await federation.coordinator(define_schema=True, explainer=EngineExplainer())
        (told,) = await coordinator.execute("EXPLAIN (TYPE FEDERATED) SELECT * FROM reachable")
        assert "  kept by kernel: reachable (python), " in told.text
        (told,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {PAIRS}")
        assert (
            "kept by ranked; no kernel applies, because a rule reads the relation more" in told.text
        )
        (data,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED, FORMAT JSON) {PAIRS}")
        assert data.data["recursions"][0]["kept"].startswith("ranked")
        assert coordinator.queries() == ()

    harness.run(scenario)


def test_a_running_query_tells_by_its_sites_instead(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        gateway = await federation.site("gw-1")
        coordinator = await federation.coordinator(define_schema=True, explainer=EngineExplainer())
        query = await harness.start_query(coordinator, "SELECT src, dst FROM reachable")
        gateway.put("link", ("a", "b", 1.0))
        await harness.until_rows(coordinator, query, {("a", "b")})
        await harness.until(lambda: "at base: kernel: reach" in coordinator.explain(query).text)
        assert "kept by" not in coordinator.explain(query).text

    harness.run(scenario)


def test_a_kernel_that_does_not_fit_is_refused_when_it_is_planned(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        await federation.site("gw-1")
        coordinator = await federation.coordinator(define_schema=True, explainer=EngineExplainer())
        for text in (FORCED, f"EXPLAIN (TYPE FEDERATED) {FORCED}"):
            with pytest.raises(UnsupportedError, match="reads the relation more than") as caught:
                await coordinator.execute(text)
            assert "strategy = 'ranked'" in caught.value.hint
        assert coordinator.queries() == ()

    harness.run(scenario)


def test_without_an_engine_to_ask_the_site_refuses_it(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        await federation.site("gw-1")
        coordinator = await federation.coordinator(define_schema=True)
        (told,) = await coordinator.execute(f"EXPLAIN (TYPE FEDERATED) {PAIRS}")
        assert "kept by" not in told.text
        query = await harness.start_query(coordinator, FORCED)
        await harness.until_status(coordinator, query, QueryStatus.FAILED)
        assert "reads the relation more than once" in coordinator.query(query).error

    harness.run(scenario)
