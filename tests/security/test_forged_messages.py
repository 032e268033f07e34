"""Forged, repeated, broken and huge messages at real services: the answers stay right.

A sample; `python -m tests.security --messages 1000000` is the long run.
"""

from pathlib import Path

import pytest

from tests.security.forging import forge
from tests.security.house import house

pytestmark = [pytest.mark.end_to_end, pytest.mark.broker, pytest.mark.timeout(600)]

SAMPLE = 4_000


def test_no_message_changes_an_answer_or_ends_a_service(tmp_path: Path) -> None:
    with house(tmp_path) as running:
        run = forge(running, SAMPLE, seed=1)
    assert min(run.by_gateway, run.by_insider) > SAMPLE // 3
    assert run.refused > SAMPLE // 10
