"""The client's small parts: addresses, events, durations."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.errors import DeploymentError
from ui.cli.client import _parse_events
from ui.cli.commands.run_command import seconds_of


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
