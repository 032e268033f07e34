"""What a gateway loads before it knows any query, and what a plan makes it load."""

import subprocess
import sys
from pathlib import Path

import pytest

from streamsql.wire.codec import encode_json
from streamsql.wire.fragments import Engine, Fragment
from tests.streamsql.from_text import bound_query, catalog_of

ROOT = Path(__file__).parents[3]
OURS = ("streamsql", "stream_engine", "host", "gateway", "broker")

START = "import sys; import gateway.__main__"
COMPILE = """
from stream_engine.circuit.compiler import compile_plan
from stream_engine.site.query_recursions import fixpoints_at
from streamsql.wire.codec import decode_json
from streamsql.wire.fragments import Fragment

fragment = decode_json(sys.stdin.buffer.read(), Fragment)
compile_plan(fragment.plan, fixpoints_at("base", fragment, 1, 0, lambda: False))
"""
PRINT = f"""
print(*sorted(m for m in sys.modules if m.partition(".")[0] in {OURS!r}), sep="\\n")
"""

SOURCES = """
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE);
CREATE SOURCE beat (who TEXT, rate INTEGER);
"""
REACHED = "SELECT * FROM reachable"


def loaded(*steps: str, given: bytes = b"") -> list[str]:
    """Return our modules that a process has after some steps."""
    command = [sys.executable, "-c", "\n".join((*steps, PRINT))]
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, check=True)
    return done.stdout.decode().split()


def loaded_for(query: str) -> list[str]:
    """Return our modules that a gateway has after it has compiled a query."""
    plan = bound_query(query, catalog_of(SOURCES, library=True)).plan
    fragment = Fragment("f0", Engine.BASE, plan, ("base",))
    return loaded(START, COMPILE, given=encode_json(fragment))


def test_a_gateway_loads_fewer_than_210_of_our_modules() -> None:
    modules = loaded(START)
    assert "gateway.runtime" in modules
    assert len(modules) < 210, f"{len(modules)} modules:\n" + "\n".join(modules)


@pytest.mark.parametrize(
    "unneeded",
    [
        "stream_engine.explanation",
        "stream_engine.operators.aggregates",
        "stream_engine.operators.joins",
        "stream_engine.operators.sessions",
        "stream_engine.recursion",
        "streamsql.binder",
        "streamsql.reference",
        "streamsql.syntax",
    ],
)
def test_a_gateway_without_queries_has_no(unneeded: str) -> None:
    assert [name for name in loaded(START) if name.startswith(unneeded)] == []


def test_a_gateway_has_no_modules_that_only_proxies_need() -> None:
    """2 MB: paho reads proxies with them, and connects through one only beside PySocks."""
    for needless in ("urllib.request", "http.client", "email.message", "tempfile", "zoneinfo"):
        command = f"{START}; print({needless!r} in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", command], cwd=ROOT, capture_output=True, check=True
        )
        assert done.stdout == b"False\n", needless


def test_a_gateway_that_is_started_as_usual_has_no_modules_of_rarer_uses() -> None:
    """0.8 MB: options of the command line, units, CSV, random numbers."""
    start = (
        "import sys; sys.argv[1:] = ['--config', 'gw-1.json', '--log-level', 'WARNING']",
        "import gateway.__main__, gateway.connectors.mqtt.mqtt_connector, streamsql.mapping.mapper",
        "from host.service_process import read_command_line",
        "assert read_command_line('gateway', None, 'settings').name == 'gw-1.json'",
    )
    for needless in ("argparse", "random", "csv", "streamsql.mapping.units"):
        command = "\n".join((*start, f"print({needless!r} in sys.modules)"))
        done = subprocess.run(
            [sys.executable, "-c", command], cwd=ROOT, capture_output=True, check=True
        )
        assert done.stdout == b"False\n", needless


@pytest.mark.parametrize(
    ("query", "needed", "unneeded"),
    [
        (
            "SELECT who FROM beat WHERE rate > 9",
            "operators.rows.linear_operators",
            "engine.operators.joins",
        ),
        (
            "SELECT who, COUNT(*) FROM beat GROUP BY who",
            "operators.aggregates.aggregate",
            "operators.sessions",
        ),
        (
            "SELECT a.who FROM beat a JOIN beat b ON a.who = b.who",
            "engine.operators.joins",
            "operators.aggregates",
        ),
        (REACHED, "recursion.kernels", "recursion.baselines"),
        (f"{REACHED} WITH (strategy = 'ranked')", "recursion.ranked", "recursion.kernels"),
        (f"{REACHED} WITH (strategy = 'dred')", "recursion.baselines.dred", "recursion.kernels"),
        (f"{REACHED} WITH (strategy = 'recompute')", "baselines.recompute", "baselines.dred"),
        (f"{REACHED} WITH (strategy = 'absorption')", "recursion.absorption", "provenance.bdd"),
        (f"{REACHED} WITH (strategy = 'relative')", "provenance.relative", "recursion.kernels"),
    ],
)
def test_a_plan_loads_what_it_names(query: str, needed: str, unneeded: str) -> None:
    modules = loaded_for(query)
    assert [name for name in modules if needed in name] != []
    assert [name for name in modules if unneeded in name] == []
