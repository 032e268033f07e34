"""`pando simulate past`: which hours gateways are asked for, and what is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ui.cli.commands.http_commands import app


@pytest.fixture
def pando(console: Any) -> Any:
    """Run `pando simulate past` against the console."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(
            app, ["simulate", "past", *arguments, "--console", console.address]
        )

    return run


def test_each_gateway_is_asked_for_each_day(pando: Any, console: Any) -> None:
    coordinator = console.coordinator
    gateways = [s.site for s in coordinator.site_infos if s.role == "gateway" and s.online]
    done = pando("--days", "2", "--every", "1 h", "--until", "2026-11-20T12:34:00Z")
    assert done.exit_code == 0, done.output
    assert f"published {200 * len(gateways)} readings of 2 days until 2026-11-20 12:00" in (
        done.output
    )
    hour = timedelta(hours=1)
    first = (datetime(2026, 11, 18, 12, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // hour
    assert coordinator.commands == [
        (gateway, "simulate", {"action": "past", "first": day, "hours": 24, "every": 3_600_000_000})
        for day in (first, first + 24)
        for gateway in gateways
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--days", "0"), "use 1 to 400"),
        (("--days", "401"), "use 1 to 400"),
        (("--every", "1 s"), "use '1 min' to '1 h'"),
        (("--every", "often"), "use e.g. '10 min'"),
        (("--until", "soon"), "use e.g. 2026-11-27T12:00:00Z"),
        (("--until", "2999-01-01"), "is not past"),
    ],
)
def test_wrong_options_are_refused(pando: Any, options: tuple[str, ...], message: str) -> None:
    refused = pando(*options)
    assert refused.exit_code == 2
    assert message in refused.output


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"done": False, "message": "nothing is simulated here"}, "simulates a building"),
        ({"done": True, "message": "", "readings": 0}, "nobody keeps readings"),
        ({"done": False, "message": "no broker"}, "has stopped publishing the past: no broker"),
    ],
)
def test_what_gateways_cannot_do_is_said(
    pando: Any, console: Any, answer: dict[str, Any], message: str
) -> None:
    coordinator = console.coordinator
    coordinator.command_answers = {s.site: answer for s in coordinator.site_infos}
    refused = pando("--days", "1")
    assert refused.exit_code == 2
    assert message in refused.output
