"""Every kind of site at a real broker: which topics it may publish on and read, and no others.

The tables are written by hand, not made from `broker.access.rights`.
"""

from collections.abc import Iterator
from typing import cast

import pytest

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess, RawClient
from tests.broker.laws.secured import (
    CONTROL,
    NOT_AUTHORIZED,
    ROOT,
    SITES,
    connect,
    connected,
    secured_broker,
)

pytestmark = pytest.mark.broker

SESSION_TAKEN_OVER = 0x8E

# Letters of the sites that may publish on the topic, and that may read it:
# c coordinator, b base, s static, 1 gw-1, 2 gw-2, v viewer, l lander.
LETTERS = {
    "coordinator": "c",
    "base": "b",
    "static": "s",
    "gw-1": "1",
    "gw-2": "2",
    "viewer": "v",
    "lander": "l",
}
TABLE = {
    "gw/gw-1/state": ("1c", "cbs12vl"),
    "gw/gw-1/birth": ("1c", "cvl"),
    "gw/gw-1/obs/climate": ("1", "cbvl"),
    "gw/gw-1/hist/climate": ("1", "cbvl"),
    "gw/gw-1/last/t1": ("1", "cv"),
    "gw/gw-1/link/near/a/b": ("1c", "cv1"),
    "gw/gw-1/clock": ("1", "c"),
    "gw/gw-1/rsp/r1": ("1", "c"),
    "gw/gw-1/settings": ("c", "c1"),
    "gw/gw-1/cmd/restart": ("c", "c1"),
    "gw/gw-1/cmd/mark": ("c1", "c1"),
    "gw/gw-1/cmd/resync/base": ("b", "c1"),
    "gw/gw-1/cmd/resync/gw-2": ("2", "c1"),
    "gw/gw-1/cmd/resync": ("c", "c1"),
    "gw/gw-1/cmd/resync/coordinator": ("", "c1"),
    "gw/gw-1/cmd/forget/base": ("b", "c1"),
    "gw/gw-1/cmd/packs/base": ("b", "c1"),
    "gw/gw-1/cmd/packs/gw-2": ("", "c1"),
    "gw/gw-1/cmd/packs/lander": ("l", "c1"),
    "gw/lander/cmd/published/gw-1": ("1", "cl"),
    "gw/base/cmd/published/gw-1": ("1", "cb"),
    "gw/static/cmd/change": ("c", "cs"),
    "gw/static/rsp/r1": ("s", "c"),
    "gw/static/obs/sys_stream": ("s", "cbvl"),
    "gw/viewer/state": ("c", "cbs12vl"),
    "gw/viewer/obs/climate": ("", "cbvl"),
    "host/coordinator/state": ("c", "cbs12vl"),
    "host/static/state": ("s", "cbs12vl"),
    "host/lander/state": ("l", "cbs12vl"),
    "host/coordinator/alarms": ("c", "cl"),
    "host/lander/alarms": ("", "cl"),
    "host/static/tables": ("c", "cs"),
    "host/static/reports": ("c", "cs"),
    "dead/gw-1": ("1", "c"),
    "dead/static": ("s", "c"),
    "dead/lander": ("l", "c"),
    "source/climate": ("c", "cb12s"),
    "interest/climate": ("c", "cb12"),
    "q/q1/frag/gw-1": ("c", "c1"),
    "q/q1/frag/static": ("c", "cs"),
    "q/q1/x/base/gw-1": ("1", "cb"),
    "q/q1/x/base/static": ("s", "cb"),
    "q/q1/x/gw-1/gw-2": ("2", "c1"),
    "q/q1/x/gw-1/coordinator": ("c", "c1"),
    "q/q1/out/base": ("b", "cv"),
    "q/q1/out/gw-1": ("1", "cv"),
    "gw/gw-1/flow": ("1", "c"),
    "gw/gw-1/columns": ("1", "c"),
    "q/q1/error/gw-1": ("c1", "c"),
    "anything/else": ("", "c"),
}
ELSEWHERE = {
    "pando/v1/other/gw/gw-1/state": ("", ""),
    "building/free": ("c", ""),
    "elsewhere": ("", ""),
    "$SYS/broker/uptime": ("", "c"),
    CONTROL: ("c", ""),
    f"{CONTROL}/response": ("", "c"),
}


@pytest.fixture(scope="module", params=["embedded", "mosquitto"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    kind = cast("Preference", request.param)
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    with secured_broker(kind, tmp_path_factory.mktemp("secured")) as process:
        yield process


@pytest.fixture(params=list(SITES))
def site(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


@pytest.fixture
def client(broker: BrokerProcess, site: str) -> Iterator[RawClient]:
    with connected(broker, site) as opened:
        yield opened


def _topics() -> dict[str, tuple[str, str]]:
    return {f"{ROOT}/{topic}": letters for topic, letters in TABLE.items()} | ELSEWHERE


def test_a_site_publishes_where_it_may_and_nowhere_else(client: RawClient, site: str) -> None:
    refused = {
        topic for topic in _topics() if client.publish(topic, b"{}", retain=False) == NOT_AUTHORIZED
    }
    letter = LETTERS[site]
    assert refused == {topic for topic, (written, _) in _topics().items() if letter not in written}


def test_a_site_reads_what_it_may_and_nothing_else(client: RawClient, site: str) -> None:
    topics = _topics()
    codes = dict(zip(topics, client.subscribe(*((topic, 1) for topic in topics)), strict=True))
    refused = {topic for topic, code in codes.items() if code == NOT_AUTHORIZED}
    letter = LETTERS[site]
    assert refused == {topic for topic, (_, read) in topics.items() if letter not in read}


@pytest.mark.parametrize(
    "wide", ["#", "+/#", f"{ROOT}/#", f"{ROOT}/gw/+/+/#", "$SYS/#", "$CONTROL/#"]
)
def test_only_the_coordinator_subscribes_to_all_of_the_federation(
    client: RawClient, site: str, wide: str
) -> None:
    allowed = site == "coordinator" and wide.startswith(ROOT)
    assert client.subscribe((wide, 1)) == [1 if allowed else NOT_AUTHORIZED]


def test_landers_share_the_readings_and_nobody_else_may(broker: BrokerProcess) -> None:
    shared = f"$share/lake/{ROOT}/gw/+/obs/+"
    with connected(broker, "lander") as lander, connected(broker, "gw-1") as gateway:
        assert gateway.subscribe((shared, 1)) == [NOT_AUTHORIZED]
        assert lander.subscribe((shared, 1)) == [1]
        gateway.publish(f"{ROOT}/gw/gw-1/obs/climate", b"21")
        assert [message.payload for message in lander.wait_for(1)] == [b"21"]


def test_what_is_published_reaches_readers(broker: BrokerProcess) -> None:
    with connected(broker, "base") as base, connected(broker, "gw-1") as gateway:
        assert base.subscribe((f"{ROOT}/gw/+/obs/climate", 1)) == [1]
        gateway.publish(f"{ROOT}/gw/gw-1/obs/climate", b"21")
        assert [message.payload for message in base.wait_for(1)] == [b"21"]


@pytest.mark.parametrize(
    ("user", "password"), [("gw-1", "wrong"), ("stranger", "pw-gw-1"), ("gw-1", "")]
)
def test_strangers_are_refused(broker: BrokerProcess, user: str, password: str) -> None:
    client, code = connect(broker, user, password or " ")
    with client:
        assert code in (0x86, NOT_AUTHORIZED)


def test_nobody_without_a_name_is_let_in(broker: BrokerProcess) -> None:
    with RawClient(broker.port, "gw-1", 5) as client:
        assert client.open()[1] in (0x86, NOT_AUTHORIZED)


def test_a_stolen_client_id_gives_nothing(broker: BrokerProcess) -> None:
    """Mosquitto gives the client its user's name as id; ours refuses it."""
    with connected(broker, "gw-2") as owner:
        thief, code = connect(broker, "gw-1", client_id="gw-2")
        with thief:
            if code == 0:
                assert thief.publish(f"{ROOT}/gw/gw-2/state", b"{}") == NOT_AUTHORIZED
        assert owner.publish(f"{ROOT}/gw/gw-2/state", b"{}") != NOT_AUTHORIZED


def test_a_client_without_an_id_gets_its_users(broker: BrokerProcess) -> None:
    with RawClient(broker.port, "", 5) as client:
        assert client.open(user="gw-1", password=b"pw-gw-1")[1] == 0
        assert client.publish(f"{ROOT}/gw/gw-1/clock", b"{}") != NOT_AUTHORIZED
        with connected(broker, "gw-1"):
            # Mosquitto hangs up without a word, ours says why.
            assert client.wait_closed() in (None, SESSION_TAKEN_OVER)


def test_a_will_on_anothers_topic_is_not_published(broker: BrokerProcess) -> None:
    with connected(broker, "viewer") as viewer:
        viewer.subscribe((f"{ROOT}/gw/+/state", 1))
        viewer.sync()
        forged = RawClient(broker.port, "gw-1", 5)
        forged.open(
            user="gw-1", password=b"pw-gw-1", will=(f"{ROOT}/gw/gw-2/state", b"x", 1, False)
        )
        forged.vanish()
        with connected(broker, "gw-1") as gateway:
            gateway.publish(f"{ROOT}/gw/gw-1/state", b"end")
        assert [message.payload for message in viewer.wait_for(1)] == [b"end"]
