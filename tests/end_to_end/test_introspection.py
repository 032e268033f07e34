"""A federation on the embedded broker tells of itself, and is set otherwise while it runs."""

import os
import signal
from pathlib import Path

import pytest

from tests.end_to_end.federation import federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

SMALL = ("--no-spark", "--gateways", "2")
HOT = "SELECT * FROM Temperature WHERE celsius > 1000.0"
SELECTIVITY = """
SELECT s.site, s.query, s.value FROM sys_stream [RANGE 5 SECONDS] s
JOIN sys_operators o ON s.site = o.site AND s.query = o.query AND s.entity = o.entity
WHERE s.property = 'selectivity' AND o.operator LIKE 'Filter%1000%'
"""
PRINTED = """
SELECT DISTINCT site, property FROM sys_stream WHERE property = 'selectivity';
SELECT site, MAX(value) AS rows_waiting FROM sys_stream [RANGE 10 SECONDS]
WHERE kind = 'site' AND property = 'queued_rows' GROUP BY site;
SELECT DISTINCT s.property FROM sys_queries q
JOIN sys_stream [RANGE 5 SECONDS] s ON s.query = q.run
WHERE s.kind = 'channel' AND s.property = 'bytes_per_s';
"""
SCHEDULER = """
SELECT DISTINCT site, property, value FROM sys_stream [RANGE 3 SECONDS]
WHERE kind = 'site' AND property IN ('scheduler', 'slice_ms')
"""


def test_a_script_prints_what_sites_tell(tmp_path: Path) -> None:
    # The first report has no rates: the printed answer has to be later than the second.
    with federation(tmp_path / "data", *SMALL) as up:
        up.start_query("SELECT * FROM Temperature")
        printed = up.pando("run", "-", "--format", "json", stdin=PRINTED)
        assert printed.returncode == 0, printed.stderr
        told = printed.stdout
        assert all(name in told for name in ("selectivity", "rows_waiting", "bytes_per_s"))
        assert all(site in told for site in ("base", "gw-1", "gw-2"))


def test_reports_are_true_and_settings_come_back(tmp_path: Path) -> None:
    with federation(tmp_path / "data", *SMALL) as up:
        hot = up.start_query(HOT)
        watch = up.start_query(f"SELECT DISTINCT site, query, value FROM ({SELECTIVITY}) t")
        nothing = {("gw-1", hot, 0.0), ("gw-2", hot, 0.0)}
        up.until(lambda: nothing <= up.rows(watch))  # nowhere is it that hot
        assert not {row for row in up.rows(watch) if row[1] == hot} - nothing
        jobs = up.start_query(
            "SELECT DISTINCT site, kind FROM sys_stream WHERE kind IN ('result', 'connector')"
        )
        up.until(lambda: {("coordinator", "result"), ("gw-1", "connector")} <= up.rows(jobs))
        sites = up.start_query("SELECT site, role FROM sys_gateways WHERE online")
        roles = {("base", "base"), ("gw-1", "gateway"), ("gw-2", "gateway"), ("static", "static")}
        up.until(lambda: up.rows(sites) == roles)

        told = up.pando("site", "settings", "gw-1", "--scheduler", "chain", "--slice-ms", "5")
        assert told.returncode == 0, told.stderr
        settings = up.start_query(SCHEDULER)
        chain = {("gw-1", "scheduler", 2.0), ("gw-1", "slice_ms", 5.0)}
        other = {("gw-2", "scheduler", 0.0)}
        up.until(lambda: chain | other <= up.rows(settings))
        assert ("gw-2", "scheduler", 2.0) not in up.rows(settings)
        before = up.sites()["gw-1"]["epoch"]
        os.kill(up.pid("gw-1"), signal.SIGKILL)
        up.until(lambda: up.event("died", service="gw-1"))
        up.until(lambda: up.sites()["gw-1"]["epoch"] > before and up.sites()["gw-1"]["online"])
        up.until(lambda: chain <= up.rows(settings))
        up.until(lambda: nothing <= up.rows(watch))
