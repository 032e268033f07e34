"""Connectors that nobody can tell a number: what the conformance kit asks of them all the same.

A recording is complete before it is read; motes and this machine answer nobody. So the checks whose
peer has to give a reading with a number do not apply: what they ask for is tried here with whatever
comes. Nothing is acknowledged, and no payloads come.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.connectors.registry import ConnectorRegistry
from gateway.connectors.testing.observed_run import Trial
from streamsql.catalog.definitions import SourceDefinition
from tests.gateway.connectors.building import building_sources, fed_by
from tests.gateway.connectors.laws.test_conformance import WITHOUT_PEERS

FILE = "what is read"


class Silent:
    """What there is to read, without anybody to speak."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.file = folder / FILE

    @property
    def endpoint(self) -> Mapping[str, object]:
        endpoints: dict[str, dict[str, object]] = {
            "motes": {"file": str(self.file), "period": "0.25 s", "turnover": "0.1 s"},
            "soft_sensors": {"mid": "m1", "period": 0.05},
            "replay": {"file": str(self.file), "format": "csv"},
        }
        return endpoints[self.kind]

    @property
    def sources(self) -> list[SourceDefinition]:
        if self.kind == "replay":
            return [building_sources()["energymeter"]]
        return fed_by(self.kind)

    async def start(self) -> None:
        mote = {"sensor": "s1", "kind": "seat", "rid": "L101", "mid": "m1"}
        content = {
            "motes": json.dumps({"gateway": "gw-1", "motes": [mote]}),
            "replay": "ts,mid,watts\n" + "".join(f"{n},m1,{n}\n" for n in range(9_000)),
        }
        if self.kind in content:
            self.file.write_text(content[self.kind])

    async def stop(self) -> None:
        self.file.unlink(missing_ok=True)

    async def send(self, number: int) -> None:
        raise NotImplementedError(f"nobody can tell {self.kind} {number}")


def run(kind: str, folder: Path, scenario: Callable[[Trial], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        peer = Silent(kind, folder)
        await peer.start()
        trial = Trial(ConnectorRegistry().factory(kind), peer)
        try:
            await scenario(trial)
        finally:
            trial.keeping.set()
            await trial.end()

    asyncio.run(whole())


def starts(trial: Trial) -> list[float]:
    """Return when the connector was started; one is also made to look at its options."""
    made = trial.started
    return [at for at, before in zip(made, [0.0, *made], strict=False) if at - before > 0.2]


@pytest.mark.parametrize("kind", WITHOUT_PEERS)
def test_unknown_options_are_refused(kind: str) -> None:
    connector = ConnectorRegistry().factory(kind)()
    for options in (connector.endpoint_options, connector.source_options):
        assert options.__struct_config__.forbid_unknown_fields


@pytest.mark.parametrize("kind", WITHOUT_PEERS)
def test_it_reads_and_stops_within_a_second(kind: str, tmp_path: Path) -> None:
    async def scenario(trial: Trial) -> None:
        await trial.begin()
        await trial.until(lambda: len(trial.recorder.readings) > 2, "readings come")
        assert trial.problem == ""
        assert await trial.end(), "it stops within a second"

    run(kind, tmp_path, scenario)


@pytest.mark.parametrize("kind", WITHOUT_PEERS)
def test_it_stops_within_a_second_while_nothing_is_kept(kind: str, tmp_path: Path) -> None:
    async def scenario(trial: Trial) -> None:
        trial.keeping.clear()
        await trial.begin()
        await trial.until(lambda: len(trial.recorder.readings) > 2, "readings come")
        assert await trial.end(), "it stops within a second"

    run(kind, tmp_path, scenario)


def test_a_replay_is_bounded_by_what_is_kept(tmp_path: Path) -> None:
    async def scenario(trial: Trial) -> None:
        trial.keeping.clear()
        await trial.begin()
        await trial.until(lambda: len(trial.recorder.readings) == 2_000, "a batch comes")
        trial.keeping.set()
        await trial.until(lambda: len(trial.recorder.readings) == 9_000, "all come")

    run("replay", tmp_path, scenario)


@pytest.mark.end_to_end
@pytest.mark.parametrize("kind", ["motes", "replay"])
def test_what_is_missing_is_said_and_asked_for_at_growing_intervals(
    kind: str, tmp_path: Path
) -> None:
    """The machine itself is never missing."""

    async def scenario(trial: Trial) -> None:
        await trial.peer.stop()
        await trial.begin()
        await trial.until(lambda: FILE in trial.problem, "it says what is missing")
        await trial.until(lambda: len(starts(trial)) >= 3, "it asks again")
        first, second, third = starts(trial)[:3]
        assert third - second > 1.5 * (second - first) > 0.5
        await trial.peer.start()
        await trial.until(lambda: len(trial.recorder.readings) > 0, "it reads what is there")
        await trial.until(lambda: trial.problem == "", "its problem is over")

    run(kind, tmp_path, scenario)
