"""The connector of docs/connectors.md is complete, short, and conforms."""

import asyncio
import sys
import types
from pathlib import Path

import pytest

from gateway.connectors.registry import BuiltIn, ConnectorRegistry, MakeConnector
from gateway.connectors.testing.checks import CHECKS, Check, name_of, run_check
from tests.docs.markdown import ROOT, blocks
from tests.gateway.connectors.testing import lines_peer
from tests.gateway.connectors.testing.lines_peer import LinesPeer

PAGE = ROOT / "docs" / "connectors.md"
MODULE = "connector_of_the_manual"


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> MakeConnector:
    text = next(blocks(PAGE, "python")).text
    module = types.ModuleType(MODULE)
    exec(compile(text, str(PAGE), "exec"), module.__dict__)  # noqa: S102  (our own page)
    monkeypatch.setitem(sys.modules, MODULE, module)
    registry = ConnectorRegistry(built_in={"lines": BuiltIn(MODULE, "LinesConnector")})
    return registry.factory("lines")


def test_its_peer_is_the_one_of_the_tests() -> None:
    shown = [block.text for block in blocks(PAGE, "python")]
    assert Path(lines_peer.__file__).read_text(encoding="utf-8") in shown


def test_the_page_names_every_check() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in map(name_of, CHECKS) if f"`{name}`" not in text] == []


def test_it_has_less_than_60_lines() -> None:
    assert len(next(blocks(PAGE, "python")).text.splitlines()) < 60


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
def test_it_conforms(check: Check, make: MakeConnector) -> None:
    assert asyncio.run(run_check(check, make, LinesPeer())), "the peer can do all of it"


def test_its_device_hears_the_password_and_nobody_else_does(make: MakeConnector) -> None:
    async def scenario(peer: LinesPeer) -> None:
        await run_check(CHECKS[1], make, peer)

    peer = LinesPeer()
    asyncio.run(scenario(peer))
    assert peer.passwords == ["hunter2"]
