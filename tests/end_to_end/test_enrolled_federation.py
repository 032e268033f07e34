"""Only who may: gateways by token, an analyst with two of three sources, a gateway that is out."""

import json
import re
import ssl
import textwrap
import time
from typing import Any

import httpx
import pytest

from tests.docs.test_enrolment import PATIENCE, Machine, section
from tests.docs.test_enrolment import machine as machine  # noqa: PLC0414 - a fixture

pytestmark = [pytest.mark.broker, pytest.mark.end_to_end, pytest.mark.timeout(400)]

SOURCES = ("boiler", "meter", "door")
OPERATOR, ANALYST = "olga", "bob"
FIGURE = re.compile(r'^pando_\w+\{[^}]*site="gw-7"[^}]*\} \S+$', re.MULTILINE)
_BLOCK = re.compile(
    r"([^`]*(?:`[^`\n]+`[^`]*)*?)^ +```(\w+)\n(.*?)^ +```$", re.MULTILINE | re.DOTALL
)


class Enrolled:
    """The federation of the page, with its first gateways and three sources."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.url = machine.placed("https://console.example:8420")
        self._ca = machine.placed("/etc/pando/authority/ca.crt")
        self._follow_until("pando gateway provision")
        self.tokens: dict[str, str] = {}

    def _follow_until(self, last: str) -> None:
        """Carry out the steps of the page up to one."""
        text = section("Enrol a gateway")
        for words, kind, block in _BLOCK.findall(text):
            lines = textwrap.dedent(block)
            if kind == "json" or "listener" in lines:
                self.machine.write(re.findall(r"`(/etc/pando/[\w.]+)`", words)[0], lines)
                continue
            if last in lines:
                lines = lines.split(last)[0]
                self.machine.do(lines)
                return
            self.machine.do(lines)
        raise AssertionError(last)

    def join(self, name: str) -> int:
        """Enrol and start a gateway with an endpoint; return the number of its service."""
        machine = self.machine
        token = machine.run(f"pando gateway provision {name}")
        (token,) = set(re.findall(r"pando1\.[\w-]+", token))
        data = machine.folder / "lib" / name
        machine.run(f"pando gateway join {self.url} {token} --data {data}")
        settings = data / "gateway.json"
        assert settings.stat().st_mode & 0o077 == 0, "its password is nobody else's"
        readings = machine.folder / f"readings-{name}"
        readings.mkdir()
        for source in SOURCES:
            (readings / f"{source}.jsonl").write_text(f'{{"device": "{source}-{name}", "n": 7}}\n')
        found = json.loads(settings.read_text())
        found["endpoints"] = {"here": {"connector": "file", "folder": str(readings)}}
        settings.write_text(json.dumps(found))
        machine.do(f"python -m gateway --config {settings}")
        return len(machine.services) - 1

    def client(self, token: str) -> httpx.Client:
        """Return a client that asks with an API token."""
        trusted = ssl.create_default_context(cafile=self._ca)
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, verify=trusted)

    def token_of(self, account: str, role: str) -> str:
        """Make an account and a token for it."""
        machine = self.machine
        machine.run(f"pando user add {account} --role {role} --password-stdin")
        made = machine.run(f"pando token create test --account {account} --role {role}")
        (token,) = {str(found) for found in re.findall(r"pando_[\w-]+", made)}
        return token

    def script(self, text: str) -> None:
        """Run statements as the administrator."""
        file = self.machine.folder / "script.sql"
        file.write_text(text)
        self.machine.run(f"pando run {file}")


def started(answer: httpx.Response) -> str:
    assert answer.is_success, answer.text
    query: str = answer.json()[0]["query"]["id"]
    return query


@pytest.fixture
def enrolled(machine: Machine) -> Enrolled:
    return Enrolled(machine)


def refused_gateway(enrolled: Enrolled) -> None:
    """A gateway that nobody has enrolled is refused, by console and broker; logs say why."""
    machine = enrolled.machine
    provisioned = machine.run("pando gateway provision gw-9")
    (token,) = set(re.findall(r"pando1\.[\w-]+", provisioned))
    machine.run("pando gateway revoke gw-9 --yes")
    refused = machine.run(f"pando gateway join {enrolled.url} {token} --data {machine.folder}/x", 2)
    assert "this token is not good" in refused
    machine.wait(lambda: "a token for gateway gw-9" in machine.log(1), "the console's log")
    like = json.loads((machine.folder / "lib" / "gw-7" / "gateway.json").read_text())
    like |= {"gateway": "gw-9", "data_dir": str(machine.folder / "lib" / "gw-9"), "endpoints": {}}
    like["broker"] = like["broker"].replace("//gw-7:", "//gw-9:")
    like.pop("broker_cert", None), like.pop("broker_key", None)
    file = machine.folder / "etc" / "gw-9.json"
    file.write_text(json.dumps(like))
    machine.do(f"python -m gateway --config {file}")
    number = len(machine.services) - 1
    machine.wait(lambda: "it refuses the connection" in machine.log(number), machine.log(number))
    machine.wait(lambda: "gw-9" in machine.log(0), "the broker's log")


def test_only_who_may(enrolled: Enrolled) -> None:
    machine = enrolled.machine
    for name in ("gw-7", "gw-8"):
        enrolled.join(name)
    enrolled.script(
        "".join(
            f"CREATE SOURCE {source} (device TEXT, n INTEGER, KEY (device)) WITH "
            f"(connector = 'file', endpoint = 'here', files = '{source}.jsonl');\n"
            for source in SOURCES
        )
    )
    refused_gateway(enrolled)

    analyst = enrolled.token_of(ANALYST, "analyst")
    operator = enrolled.token_of(OPERATOR, "operator")
    enrolled.script(f"GRANT SELECT ON SOURCE boiler, meter TO USER {ANALYST}")
    with enrolled.client(analyst) as http:
        both = "SELECT b.device FROM boiler b JOIN meter m ON b.n = m.n"
        query = started(http.post("/api/statements", json={"text": both}))

        def devices() -> set[str]:
            rows = http.get(f"/api/queries/{query}/rows").json()["rows"]
            return {row["device"] for row in rows}

        machine.wait(lambda: devices() == {"boiler-gw-7", "boiler-gw-8"}, "both are counted")
        for text in ("SELECT * FROM door", "SELECT n FROM meter UNION SELECT n FROM door"):
            refused = http.post("/api/statements", json={"text": text})
            assert refused.status_code == 403, refused.text
            assert "door" in refused.json()["error"]["message"]
        assert http.get("/api/fleet").status_code == 403
        assert http.get("/metrics").status_code == 403

        with enrolled.client(operator) as watcher:
            begun = time.monotonic()
            machine.run("pando gateway revoke gw-8 --yes")
            machine.wait(lambda: not site(watcher, "gw-8")["online"], "gw-8 is out", PATIENCE)
            out = time.monotonic() - begun
            machine.wait(lambda: devices() == {"boiler-gw-7"}, "its rows have left")
            print(f"revoked, and seen to be out, after {out:.2f} s")  # noqa: T201
            is_seen(watcher)


def site(http: httpx.Client, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = http.get("/api/sites").json()
    return next(each for each in found if each["site"] == name)


def is_seen(http: httpx.Client) -> None:
    """The operator sees gateways and enrolments, the audit, and figures of all sites."""
    states = {each["name"]: each["state"] for each in http.get("/api/fleet").json()}
    assert states == {"gw-7": "joined", "gw-8": "revoked", "gw-9": "revoked"}
    page = http.get("/gateways", headers={"Accept": "text/html"})
    assert page.is_success
    text = "SELECT who, action, target, outcome FROM sys_audit"
    query = started(http.post("/api/statements", json={"text": text}))
    deadline = time.monotonic() + PATIENCE
    while True:
        rows = http.get(f"/api/queries/{query}/rows").json()["rows"]
        seen = {(row["action"], row["target"], row["outcome"]) for row in rows}
        wanted = [("revoke", "gw-8", "done"), ("join", "gw-9", "refused")]
        if all(any(a in x[0] and t in x[1] and o == x[2] for x in seen) for a, t, o in wanted):
            break
        assert time.monotonic() < deadline, sorted(seen)
        time.sleep(0.1)
    assert any(row["who"] == ANALYST and row["outcome"] == "refused" for row in rows)
    figures = http.get("/metrics").text
    assert FIGURE.search(figures), figures[:3_000]
