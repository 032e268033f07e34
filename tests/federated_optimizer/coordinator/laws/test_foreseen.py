"""EXPLAIN names what will keep a recursion, and what does not fit is refused before it runs."""

from typing import Any

import pytest

from deploy.explainer import EngineExplainer
from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from stream_engine.recursion import strategies
from streamsql.errors import UnsupportedError

PAIRS = """WITH RECURSIVE pairs (src, dst) AS (SELECT src, dst FROM link
  UNION SELECT a.src, b.dst FROM pairs a JOIN pairs b ON a.dst = b.src) SELECT * FROM pairs"""
FORCED = PAIRS + " WITH (strategy = 'kernel')"
COMPARED = "SELECT * FROM reachable WITH (strategy = 'dred')"
REFUSED = "strategy = 'dred' is for comparison and is not in the installed package"


@pytest.fixture
def _of_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine finds no strategy that is for comparison."""
    monkeypatch.setattr(strategies, "find_spec", lambda _name: None)


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


@pytest.mark.usefixtures("_of_the_wheel")
def test_a_strategy_for_comparison_is_refused_where_it_is_not_installed(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        await federation.site("gw-1")
        coordinator = await federation.coordinator(define_schema=True, explainer=EngineExplainer())
        for text in (COMPARED, f"EXPLAIN (TYPE FEDERATED) {COMPARED}"):
            with pytest.raises(UnsupportedError, match=REFUSED) as caught:
                await coordinator.execute(text)
            assert "the default, strategy = 'auto'" in caught.value.hint
        assert coordinator.queries() == ()

    harness.run(scenario)


@pytest.mark.usefixtures("_of_the_wheel")
def test_a_site_without_a_strategy_refuses_it_by_name_and_goes_on(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", "base")
        gateway = await federation.site("gw-1")
        coordinator = await federation.coordinator(define_schema=True)
        refused = await harness.start_query(coordinator, COMPARED)
        await harness.until_status(coordinator, refused, QueryStatus.FAILED)
        assert REFUSED in coordinator.query(refused).error
        other = await harness.start_query(coordinator, "SELECT src, dst FROM reachable")
        gateway.put("link", ("a", "b", 1.0))
        await harness.until_rows(coordinator, other, {("a", "b")})

    harness.run(scenario)
