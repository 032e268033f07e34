"""The client that a service's settings describe."""

from dataclasses import dataclass

import pytest

from host.mqtt import Will, open_service_client
from streamsql.errors import DeploymentError

WILL = Will("pando/demo/host/static/state", b"{}")


@dataclass
class Settings:
    broker: str
    broker_ca: str = ""
    broker_cert: str = ""
    broker_key: str = ""
    broker_password_file: str = ""


def test_a_client_is_not_connected_yet() -> None:
    assert not open_service_client(
        Settings("mqtt://user:secret@localhost"), "static", WILL
    ).connected


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings("http://user:secret@localhost"), "expected mqtt://"),
        (Settings("mqtt://user:secret@localhost:0"), "no usable scheme, host or port"),
        (Settings("mqtt://user:secret@localhost", broker_ca="/ca.pem"), "not an mqtts:// address"),
        (Settings("mqtts://user:secret@localhost", broker_ca="/none"), "TLS files cannot be used"),
        (Settings("mqtts://user:secret@localhost", broker_key="/key"), "needs its certificate"),
    ],
)
def test_wrong_settings_are_refused_and_no_password_is_shown(settings: Settings, said: str) -> None:
    with pytest.raises(DeploymentError, match=f"settings: .*{said}") as refusal:
        open_service_client(settings, "static", WILL)
    assert "secret" not in str(refusal.value)


def test_an_id_that_no_broker_takes_is_refused() -> None:
    with pytest.raises(DeploymentError, match="client id ''"):
        open_service_client(Settings("mqtt://localhost"), "", WILL)
