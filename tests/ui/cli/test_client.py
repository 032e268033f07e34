"""The client's small parts: addresses, events, durations."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.errors import DeploymentError
from ui.cli.client import DEFAULT_ADDRESS, _parse_events, console_address
from ui.cli.running import seconds_of


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No console was ever started here."""
    monkeypatch.delenv("PANDO_CONSOLE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_address_is_given_or_set_or_remembered(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert console_address(None) == DEFAULT_ADDRESS
    remembered = bare / "state" / "pando" / "console.json"
    remembered.parent.mkdir(parents=True)
    remembered.write_text('{"console": "http://a:1/"}')
    assert console_address(None) == "http://a:1"
    here = bare / "pando-data" / "console.json"
    here.parent.mkdir()
    here.write_text("not json")
    assert console_address(None) == "http://a:1"
    here.write_text('{"console": "http://b:2"}')
    assert console_address(None) == "http://b:2"
    monkeypatch.setenv("PANDO_CONSOLE", "http://c:3")
    assert console_address(None) == "http://c:3"
    assert console_address("http://d:4/") == "http://d:4"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["snapshot", "change"]), st.dictionaries(st.text(), st.integers())
        )
    )
)
def test_events_are_read_as_they_were_written(sent: list[tuple[str, dict[str, int]]]) -> None:
    lines = []
    for event, value in sent:
        lines += [": still here", f"event: {event}", f"data: {json.dumps(value)}", ""]
    read = [item for item in _parse_events(iter(lines)) if item != ("", None)]
    assert read == sent


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5.0), ("500ms", 0.5), ("2min", 120.0), ("1h", 3600.0), ("3", 3.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@given(st.text().filter(lambda t: not any(c.isdigit() for c in t)))
def test_what_is_no_duration_is_refused(text: Any) -> None:
    with pytest.raises(DeploymentError):
        seconds_of(text)
