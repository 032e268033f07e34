"""A declared source is changed in the console's editor while a query over it is shown."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from broker.broker_testing import BrokerProcess
from tests.end_to_end.editor import run_in_editor
from tests.end_to_end.federation import PATIENCE, Federation, federation
from tests.end_to_end.peers import publish
from tests.headless_browser import headless_browser

pytestmark = [pytest.mark.end_to_end, pytest.mark.browser, pytest.mark.timeout(400)]

CLIMATE = """SOURCE climate (device TEXT, temp DOUBLE FROM 'DHT.Temperature' {}{}, KEY (device))
WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{{device}}/SENSOR')"""
HUMIDITY = "humidity DOUBLE FROM 'DHT.Humidity' UNIT '%RH'"


@dataclass
class Home:
    """A federation of one gateway, a broker of devices, and a browser."""

    federation: Federation
    broker: BrokerProcess
    page: Page

    def reports(self, device: str, temperature: float, humidity: float) -> None:
        """Let a device report."""
        values = {"DHT": {"Temperature": temperature, "Humidity": humidity}}
        with ThreadPoolExecutor(1) as beside_the_browser:  # whose loop runs in this thread
            sent = beside_the_browser.submit(
                publish, self.broker.url, (f"tele/{device}/SENSOR", values)
            )
            sent.result()

    def types(self, text: str) -> None:
        """Run a statement in the editor."""
        run_in_editor(self.page, self.federation, text)


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("browser_devices")
    (folder / "home").mkdir()
    with ExitStack() as stack:
        broker = stack.enter_context(BrokerProcess("embedded", folder / "home"))
        running = stack.enter_context(federation(folder / "data", "--no-spark", "--gateways", "1"))
        endpoint = ("gw-1", "home", "mqtt", f"address={broker.url}")
        done = running.pando("endpoint", "add", *endpoint, "--data", str(running.data))
        assert done.returncode == 0, done.stdout + done.stderr
        page = stack.enter_context(headless_browser()).new_page()
        page.set_default_timeout(1000 * PATIENCE)
        expect.set_options(timeout=1000 * PATIENCE)
        yield Home(running, broker, page)


def test_a_column_added_in_the_editor_has_values_without_a_restart(home: Home) -> None:
    running, page = home.federation, home.page
    heads, cells = page.locator("#rows thead th"), page.locator("#rows tbody tr td")
    home.types("CREATE " + CLIMATE.format("UNIT 'Cel'", ""))
    running.until(lambda: "climate" in running.served())
    gateway = running.pid("gw-1")

    home.types("SELECT * FROM climate")
    home.reports("hall", 20.0, 40.0)
    expect(cells).to_have_text(["hall", "20"])
    expect(heads).to_have_text(["device ▴", "temp Cel"])

    home.types(f"ALTER SOURCE climate ADD COLUMN {HUMIDITY}")
    expect(page.locator("body")).to_contain_text("source climate")
    home.types("SELECT device, humidity FROM climate")
    expect(heads).to_have_text(["device ▴", "humidity %RH"])

    def has_humidity() -> bool:
        home.reports("hall", 21.0, 45.0)
        return page.locator("#rows tbody td", has_text="45").count() == 1

    running.until(has_humidity)
    expect(cells).to_have_text(["hall", "45"])

    home.types("SELECT device, temp FROM climate")
    expect(heads).to_have_text(["device ▴", "temp Cel"])
    replaced = "CREATE OR REPLACE " + CLIMATE.format("UNIT 'K' IN 'Cel'", f", {HUMIDITY}")
    answered = running.http.post("/api/statements", json={"text": replaced})
    assert answered.is_success, answered.text
    expect(heads).to_have_text(["device ▴", "temp K"])

    def is_in_kelvin() -> bool:
        home.reports("hall", 21.0, 45.0)
        return page.locator("#rows tbody td", has_text="294.15").count() == 1

    running.until(is_in_kelvin)

    page.goto(f"{running.address}/data")
    expect(page.locator("#definitions")).to_contain_text("temp DOUBLE UNIT 'K'")
    assert running.pid("gw-1") == gateway
