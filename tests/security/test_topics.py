"""Every topic at both brokers, tried by everybody: what arrives, and at whom."""

from collections.abc import Iterator
from typing import cast

import pytest

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from tests.broker.laws.secured import FEDERATION, secured_broker
from tests.security.broker_rights import RULES, topic_methods
from tests.security.wire_attempts import STRANGERS, intrusions, tried_by_all

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", params=["embedded", "mosquitto"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    kind = cast("Preference", request.param)
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    with secured_broker(kind, tmp_path_factory.mktemp("secured")) as process:
        yield process


def test_every_topic_is_stated() -> None:
    """Who adds a topic says here who may use it."""
    assert set(topic_methods()) == set(RULES)


@pytest.mark.parametrize("version", [4, 5], ids=["v3.1.1", "v5"])
def test_nobody_does_more_or_less_than_is_stated(broker: BrokerProcess, version: int) -> None:
    attempts = tried_by_all(broker, FEDERATION, version)
    assert attempts.wrong == []
    assert attempts.refused > attempts.allowed > 300


@pytest.mark.parametrize("kind", STRANGERS)
def test_who_is_not_let_in_leaves_nothing(broker: BrokerProcess, kind: str) -> None:
    attempts = intrusions(broker, FEDERATION, kind)
    assert attempts.wrong == []
    assert (attempts.allowed, attempts.refused > 400) == (0, True)
