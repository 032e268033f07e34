"""Accounts, passwords and certificates of `pando up --secure`: made once, mended, kept private."""

from pathlib import Path

import msgspec
import pytest

from broker.access.dynamic_security import Client, decode_document, encode_document
from deploy.local import configure
from deploy.local.layout import Layout
from deploy.local.secured_broker import BrokerPlace, names_of_machine, secured_broker
from gateway.gateway_settings import ClockSettings
from host.certificates.certificate_facts import facts_of
from streamsql.errors import DeploymentError

GATEWAYS = ("gw-1", "gw-2")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


def passwords(layout: Layout) -> dict[str, str]:
    return {file.name: file.read_text().strip() for file in layout.passwords.iterdir()}


def clients(layout: Layout) -> dict[str, Client]:
    content = (layout.data("broker") / "dynamic-security.json").read_bytes()
    return {client.username: client for client in decode_document(content).clients}


def test_every_service_gets_an_account_and_its_password(layout: Layout) -> None:
    security = secured_broker(layout, GATEWAYS)
    made = passwords(layout)
    assert set(made) == {"coordinator", "base", "static", "lander", "viewer", *GATEWAYS}
    for site, client in clients(layout).items():
        kept = client.password_hash
        assert kept is not None
        assert kept.fits(made[site].encode())
    assert security.host == "127.0.0.1"
    assert security.certificate is not None
    assert {"localhost", "127.0.0.1"} <= set(facts_of(security.certificate.read_bytes()).names)


def test_a_second_start_keeps_what_is_there(layout: Layout) -> None:
    first = secured_broker(layout, GATEWAYS)
    before = passwords(layout), clients(layout)
    certificate = (layout.authority / "broker.crt").read_bytes()
    assert secured_broker(layout, GATEWAYS) == first
    assert (passwords(layout), clients(layout)) == before
    assert (layout.authority / "broker.crt").read_bytes() == certificate


def test_accounts_that_others_have_made_stay_and_disabled_ones_stay_so(layout: Layout) -> None:
    secured_broker(layout, GATEWAYS)
    file = layout.data("broker") / "dynamic-security.json"
    document = decode_document(file.read_bytes())
    changed = [
        msgspec.structs.replace(client, disabled=client.username == "gw-1")
        for client in document.clients
    ]
    more = msgspec.structs.replace(
        document, clients=(*changed, Client(username="gw-9", textname="enrolled"))
    )
    file.write_bytes(encode_document(more))
    secured_broker(layout, (*GATEWAYS, "gw-3"))
    found = clients(layout)
    assert found["gw-9"].textname == "enrolled"
    assert found["gw-1"].disabled
    assert "gw-3" in found


def test_a_lost_password_is_made_anew(layout: Layout) -> None:
    secured_broker(layout, GATEWAYS)
    before = passwords(layout)
    (layout.passwords / "gw-1").unlink()
    secured_broker(layout, GATEWAYS)
    after = passwords(layout)
    assert after["gw-1"] != before["gw-1"]
    kept = clients(layout)["gw-1"].password_hash
    assert kept is not None
    assert kept.fits(after["gw-1"].encode())
    assert {s: w for s, w in after.items() if s != "gw-1"} == {
        s: w for s, w in before.items() if s != "gw-1"
    }


def test_a_damaged_file_is_named(layout: Layout) -> None:
    secured_broker(layout, GATEWAYS)
    file = layout.data("broker") / "dynamic-security.json"
    file.write_text("{")
    with pytest.raises(DeploymentError, match=r"dynamic-security\.json") as caught:
        secured_broker(layout, GATEWAYS)
    assert "remove the file" in caught.value.hint


def test_settings_say_how_to_connect(layout: Layout) -> None:
    settings = configure.base_settings(layout, "mqtts://127.0.0.1:7", ClockSettings())
    given = BrokerPlace("mqtts://127.0.0.1:7", layout).given_to(settings, "base")
    assert given.broker == "mqtts://base@127.0.0.1:7"
    assert given.broker_ca == str(layout.authority / "ca.crt")
    assert given.broker_password_file == str(layout.passwords / "base")
    assert BrokerPlace("mqtt://127.0.0.1:7").given_to(settings, "base") is settings


def test_who_listens_for_other_machines_has_a_certificate_for_their_names() -> None:
    assert set(names_of_machine("127.0.0.1")) == {"localhost", "127.0.0.1", "::1"}
    assert len(names_of_machine("0.0.0.0")) > 3  # noqa: S104 - nothing listens
