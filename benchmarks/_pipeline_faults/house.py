"""A broker, a lander and a static engine as processes, and two disks that can be full."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess
from static_engine.lake.lake_settings import LakeSettings
from static_engine.landing.lander_settings import LanderSettings
from static_engine.static_settings import StaticSettings

ROOT = Path(__file__).resolve().parents[2]
END_SECONDS = 60.0
DISK_MIB = 2_048
SPARE_BYTES = 1 << 20


class Service:
    """A service as its own process."""

    def __init__(self, module: str, settings: msgspec.Struct, folder: Path) -> None:
        file = folder / f"{module}.json"
        file.write_bytes(msgspec.json.encode(settings))
        self._command = [sys.executable, "-m", module, "--config", str(file)]
        self._log = folder / f"{module}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=ROOT, stdout=log, stderr=log)  # noqa: S603

    def end(self, number: int = signal.SIGKILL) -> None:
        """Send a signal and wait for the end."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_SECONDS)

    def below(self, word: str) -> list[psutil.Process]:
        """Return its children and theirs whose command line has a word."""
        if self._process is None:
            return []
        found = []
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if any(word in part for part in child.cmdline()):
                        found.append(child)
        return found


class Disk:
    """A file system of its own in memory, where this machine lets us make one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_own = False

    def mount(self) -> None:
        """Make it; `is_own` says whether that was allowed."""
        self.folder.mkdir()
        options = f"size={DISK_MIB}m"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)]
        with contextlib.suppress(OSError):
            done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
            self.is_own = os.geteuid() == 0 and done.returncode == 0

    def fill(self) -> None:
        """Leave no room for anything new.

        Raises:
            RuntimeError: Others write faster than this looks.
        """
        for _ in range(50):
            used = os.statvfs(self.folder)
            if self._resize(f"{(used.f_blocks - used.f_bfree) * used.f_frsize // 1024 + 4}k"):
                return
        raise RuntimeError(f"{self.folder} does not become full")

    def clear(self) -> None:
        """Give it its room back.

        Raises:
            RuntimeError: It stays full.
        """
        if not self._resize(f"{DISK_MIB}m"):
            raise RuntimeError(f"{self.folder} does not become larger")

    def unmount(self) -> None:
        """Take it away."""
        if self.is_own:
            subprocess.run(["umount", "-l", str(self.folder)], check=False)  # noqa: S603, S607

    def _resize(self, size: str) -> bool:
        """Change the size; refused where more is used by now."""
        command = ["mount", "-o", f"remount,size={size}", str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603


class House:
    """All that stands between gateways and the lake.

    Args:
        folder: Its data.
        cores: Of Spark.
    """

    def __init__(self, folder: Path, cores: int) -> None:
        self.folder = folder
        self.landed, self.warehouse = Disk(folder / "landed"), Disk(folder / "warehouse")
        kind: Preference = "embedded" if find_mosquitto() is None else "mosquitto"
        self.broker = BrokerProcess(kind, folder)
        segments = str(self.landed.folder / "segments")
        self.catalog = f"sqlite:///{folder / 'catalog.db'}"
        self.lander_settings = LanderSettings(
            self.broker.url,
            str(folder / "lander"),
            segments,
            segment_seconds=0.2,
            spare_bytes=SPARE_BYTES,
        )
        self.static_settings = StaticSettings(
            self.broker.url,
            str(folder / "static"),
            spark_master=f"local[{cores}]",
            class_data_archive=False,  # it would go with the folder
            lake=LakeSettings(self.catalog, str(self.warehouse.folder / "lake")),
            segments=segments,
            batch_seconds=0.5,
        )

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run everything until the block ends."""
        with contextlib.ExitStack() as stack:
            for disk in (self.landed, self.warehouse):
                stack.callback(disk.unmount)
                disk.mount()
            stack.enter_context(self.broker)
            self.lander = Service("static_engine.landing", self.lander_settings, self.folder)
            self.static = Service("static_engine", self.static_settings, self.folder)
            for service in (self.lander, self.static):
                stack.callback(service.end, signal.SIGTERM)
                service.start()
            yield
