"""Section "First devices, from nothing" of docs/devices.md, as a reader goes through it."""

import contextlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from broker.free_ports import free_port
from tests.docs.markdown import ROOT, walk_blocks
from tests.end_to_end.editor import run_in_editor
from tests.end_to_end.federation import PATIENCE, Federation, federation
from tests.end_to_end.peers import retained
from tests.headless_browser import headless_browser

pytestmark = [pytest.mark.end_to_end, pytest.mark.browser, pytest.mark.timeout(600)]

PORTS = {"mqtt": "1884", "modbus": "5020", "http": "8095"}
"""Those of the simulated devices on the page; the test takes free ones."""
SOURCES = {"opening", "main_meter", "heater", "zigbee_mesh", "heard"}
WATTS = {str(1500 + 10 * step) for step in range(10)}
AMPS = {"1", "1.1", "1.2", "1.3", "1.4"}
OUR_LINK = "path.link:not(.good):not(.fair):not(.poor)"
"""Links of the building have costs; those of the Zigbee mesh have none."""


@dataclass
class Walk:
    """The page's blocks in their order, for the ports of this test."""

    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in PORTS})

    def __post_init__(self) -> None:
        self._left = walk_blocks(ROOT / "docs" / "devices.md")
        self.answer = ""

    def next(self, language: str) -> str:
        """Return the text of the next block, which has to be of a language."""
        block = self._left.pop(0)
        self.answer = block.answer
        assert block.language == language, block
        text = block.text.strip()
        for name, port in PORTS.items():
            text = re.sub(rf"(?<=[:=]){port}\b", str(self.ports[name]), text)
        return text

    def is_over(self) -> bool:
        """Whether each block was taken."""
        return not self._left

    @contextlib.contextmanager
    def devices(self) -> Iterator[None]:
        """Run the page's simulator."""
        words = [f"--{name}={port}" for name, port in self.ports.items()]
        command = [sys.executable, *self.next("sh").split()[1:], *words, "--every=0.5"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert "MQTT broker" in process.stdout.readline()
                yield
            finally:
                process.terminate()
                assert process.wait(PATIENCE) == 0


@dataclass
class Reader:
    """Somebody who has the page, a terminal and a browser."""

    walk: Walk
    running: Federation
    page: Page
    folder: Path

    def commands(self) -> str:
        """Run the commands of the next block; return what they print."""
        printed = []
        for line in self.walk.next("sh").splitlines():
            words = [str(self.folder / w) if w == "house.sql" else w for w in shlex.split(line)]
            assert words[0] == "pando"
            done = self.running.pando(*words[1:])
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
            printed.append(done.stdout)
        return "".join(printed)

    def types(self) -> None:
        """Run the next block in the editor."""
        run_in_editor(self.page, self.running, self.walk.next("sql"))

    def row(self, room: str) -> list[str]:
        """Return the cells of a room's row in the shown result, none without one."""
        row = self.page.locator("#rows tbody tr", has_text=room)
        return row.locator("td").all_inner_texts() if row.count() == 1 else []

    def gateways(self) -> dict[str, int]:
        """Return the process ids of the gateways."""
        return {name: self.running.pid(name) for name in ("gw-1", "gw-2")}

    def creates_tables(self) -> None:
        """Press *Create tables* on the map."""
        self.page.goto(self.running.address)
        self.page.locator("#calibration summary").click()
        self.page.get_by_role("button", name="Create tables").click()
        expect(self.page.locator("#calibration-missing")).to_contain_text("Created receiver")

    def looks_at_the_map(self) -> None:
        """See the links of the Zigbee mesh and the badge."""
        page = self.page
        page.goto(self.running.address)
        page.locator("#levels button[data-level='1']").click()
        page.get_by_label("Radio links").check()
        page.get_by_label("Positions by").select_option("weighted_centroid")
        expect(page.locator(OUR_LINK)).to_have_count(1)
        badge = page.locator(".position[aria-label^='ann:']")
        expect(badge).to_contain_text(re.compile(r"L10[12] · \d+ %"))

    def topics(self, root: str) -> dict[str, Any]:
        """Return what is retained at the broker of the devices."""
        url = f"mqtt://127.0.0.1:{self.walk.ports['mqtt']}"
        with ThreadPoolExecutor(1) as beside_the_browser:  # whose loop runs in this thread
            return beside_the_browser.submit(retained, url, root).result()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    walk = Walk()
    up = re.fullmatch(r'make up ARGS="(.*)"', walk.next("sh"))
    assert up
    with (
        walk.devices(),
        federation(tmp_path / "data", *up[1].split()) as running,
        headless_browser() as browser,
    ):
        page = browser.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        expect.set_options(timeout=1000 * PATIENCE)
        yield Reader(walk, running, page, tmp_path)


def test_the_page_leads_from_nothing_to_home_assistant(reader: Reader) -> None:
    running, page = reader.running, reader.page
    assert reader.commands().count("home") >= 2
    (reader.folder / "house.sql").write_text(reader.walk.next("sql"))
    assert set(SOURCES) <= set(re.findall(r"\w+", reader.commands()))
    running.until(lambda: running.served() >= SOURCES)

    reader.types()
    expect(page.locator("#rows thead th")).to_have_text(["room ▴", "amps A", "power W"])

    def answers() -> bool:
        room, amps, watts = reader.row("L101") or ("", "", "")
        return room == "L101" and amps in AMPS and watts in WATTS

    running.until(answers)
    first = reader.row("L101")
    running.until(lambda: answers() and reader.row("L101")[2] != first[2])

    reader.creates_tables()
    reader.types()
    reader.looks_at_the_map()

    gateways = reader.gateways()
    reader.types()
    expect(page.locator("#rows thead th")).to_have_text(["room ▴", "battery %"])
    running.until(lambda: reader.row("L101") == ["L101", "88"])
    assert reader.gateways() == gateways

    reader.types()
    topic = "building/wasted/L101"
    state = running.until(lambda: reader.topics("building").get(topic))
    assert state["room"] == "L101"
    assert f"{state['power']:g}" in WATTS
    running.until(lambda: reader.topics("building")[topic]["power"] != state["power"])
    found = reader.topics("homeassistant")
    told = [config for config in found.values() if config["state_topic"] == topic]
    assert {(config["device_class"], config["unit_of_measurement"]) for config in told} == {
        ("current", "A"),
        ("power", "W"),
    }
    shown = reader.commands()
    assert topic in shown
    assert "homeassistant/sensor/" in shown
    example, _, payload = reader.walk.answer.partition(" ")
    assert (example, list(json.loads(payload))) == (topic, list(state))
    assert reader.walk.is_over()
