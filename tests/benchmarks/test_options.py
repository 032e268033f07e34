"""Every benchmark takes --quick and --json, and prints nothing but one JSON object then."""

import ast
import gzip
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from deploy.cli.bench import BENCHMARKS

ALL = sorted(path.stem for path in BENCHMARKS.glob("*.py") if not path.stem.startswith("_"))
CHEAP = ("optimizer", "positions", "restart")
SPARK = ("into_lake", "large_fragments", "pipeline_faults", "static_fragments")
REAL = "recursive_real"
OWN_TESTS = ("device_faults", "fleet", "intake", "soak_faults", "traffic_at_rest")
"""With tests of their own, which run them."""
SHORTER = {
    "argus": ("--scale", "0.002", "--queries", "4", "--sets", "fed"),
    "history": ("--no-spark",),
    "nexmark": ("--queries", "q1,q8"),
    "pipeline_faults": ("--faults", "2"),
    "recursive": ("--cap", "0.1"),
    "recursive_figures": ("--figures", "16"),
}
"""Of those that take long even with --quick, what is enough to print JSON."""
COMMAND_LINE = {"compare_and_print": "_compared_networks"}
"""Functions that add options for several benchmarks, and the module that has each."""
TRIANGLE = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<graph edgedefault="undirected">
<node id="a"/><node id="b"/><node id="c"/>
<edge source="a" target="b"/><edge source="b" target="c"/><edge source="c" target="a"/>
</graph></graphml>"""
TRACE = "\n".join(
    [
        '{"location": "grenoble", "node_count": 3, "channels": [11], "transaction_count": 1}',
        "datetime,src,dst,channels,mean_rssi,pdr,transaction_id",
        *(
            f"2017-06-20 16:2{minute}:18,m{minute % 3},m{(minute + 1) % 3},11,-61,0.9,{minute}"
            for minute in range(10)
        ),
    ]
)


def printed(name: str, *more: str) -> Any:
    """Run a benchmark as `pando bench` does; return the JSON it prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--json", *more],
        cwd=BENCHMARKS.parent,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


def sources_of(name: str) -> list[ast.AST]:
    """Return the parsed source of a benchmark, and of the command line that it shares."""
    tree = ast.parse((BENCHMARKS / f"{name}.py").read_text(encoding="utf-8"))
    calls = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    shared = COMMAND_LINE.keys() & calls
    return [tree, *(tree for each in shared for tree in sources_of(COMMAND_LINE[each]))]


def options_of(name: str) -> dict[str, dict[str, object]]:
    """Return the options that a benchmark's source adds, with their plain settings."""
    return {
        node.args[0].value: {
            word.arg: word.value.value
            for word in node.keywords
            if word.arg and isinstance(word.value, ast.Constant)
        }
        for tree in sources_of(name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "add_argument"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("option", ["--quick", "--json"])
def test_every_benchmark_has_the_switch(name: str, option: str) -> None:
    assert options_of(name).get(option, {}).get("action") == "store_true"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CHEAP)
def test_a_cheap_benchmark_prints_json(name: str) -> None:
    assert printed(name)


@pytest.mark.timeout(900)
def test_recorded_networks_are_read_from_the_named_folder(tmp_path: Path) -> None:
    (tmp_path / "topology-zoo").mkdir()
    (tmp_path / "link-traces").mkdir()
    with tarfile.open(tmp_path / "topology-zoo" / "graphml.tar.gz", "w:gz") as packed:
        member = tarfile.TarInfo("Triangle.graphml")
        member.size = len(TRIANGLE)
        packed.addfile(member, io.BytesIO(TRIANGLE.encode()))
    with gzip.open(tmp_path / "link-traces" / "grenoble-sample.k7.gz", "wt") as recording:
        recording.write(TRACE)
    found = printed(REAL, "--data", str(tmp_path))
    assert found["zoo"]["Triangle"]["links"] == 6
    assert found["trace"]["readings"] == 10


@pytest.mark.end_to_end
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.spark] if name in SPARK else [])
        for name in ALL
        if name not in (*CHEAP, *OWN_TESTS, REAL)
    ],
)
def test_a_benchmark_prints_json(name: str) -> None:
    assert printed(name, *SHORTER.get(name, ()))
