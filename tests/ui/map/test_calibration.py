"""Statements of the calibration walk: what they insert, and what is refused."""

import math

import pytest

from deploy.session import LocalSession
from streamsql.errors import DeploymentError
from ui.map.calibration import (
    HEARD,
    POINTS,
    Spot,
    calibration_script,
    point_id,
    removal_script,
)

TABLES = """CREATE TABLE radio_map (point TEXT, receiver TEXT, rssi DOUBLE);
CREATE TABLE calibration_point (point TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE);
CREATE SOURCE heard (badge TEXT, receiver TEXT, rssi DOUBLE, ts TIMESTAMP) WITH (ttl = '1 min');
INSERT INTO heard VALUES ('b', 'r1', -60.0, '2026-01-01T00:00:00Z'),
  ('b', 'r1', -62.0, '2026-01-01T00:00:01Z');"""
SPOT = Spot("it's L101", 1, 2.5, -0.25)


def test_the_means_of_what_is_heard_become_rows_of_both_tables() -> None:
    session = LocalSession()
    session.run(TABLES)
    (heard,) = session.run(HEARD)
    assert heard.rows == (("b", "r1", -61.0, 2),)
    session.run(calibration_script("p1", SPOT, {"r1": -61.0, "r'2": -1e-7}))
    assert session.run("SELECT * FROM radio_map")[0].rows == (
        ("p1", "r'2", -1e-7),
        ("p1", "r1", -61.0),
    )
    assert session.run("SELECT * FROM calibration_point")[0].rows == (
        ("p1", "it's L101", 1, 2.5, -0.25),
    )
    assert session.run(POINTS)[0].rows == (("p1", "it's L101", 1, 2.5, -0.25, 2),)
    session.run(calibration_script("it's p2", SPOT, {"r1": -50.0}))
    session.run(removal_script("p1"))
    assert session.run(POINTS)[0].rows == (("it's p2", "it's L101", 1, 2.5, -0.25, 1),)
    assert session.run("SELECT point FROM radio_map")[0].rows == (("it's p2",),)
    session.close()


@pytest.mark.parametrize(
    ("spot", "levels"),
    [
        (SPOT, {}),
        (SPOT, {"r": math.nan}),
        (SPOT, {"r": -math.inf}),
        (SPOT, {"r": 51.0}),
        (SPOT, {f"r{n}": -50.0 for n in range(1001)}),
        (Spot("r", 0, math.nan, 0.0), {"r": -50.0}),
    ],
)
def test_what_cannot_be_a_point_is_refused(spot: Spot, levels: dict[str, float]) -> None:
    with pytest.raises(DeploymentError):
        calibration_script("p", spot, levels)


def test_points_are_named_by_the_time() -> None:
    assert point_id().startswith("point-1")


def test_what_is_heard_may_be_a_view() -> None:
    session = LocalSession()
    session.run("""CREATE LINK SOURCE sighting (badge TEXT, room TEXT, rssi DOUBLE, ts TIMESTAMP)
      WITH (ttl = '30 s');
    CREATE VIEW heard (badge, receiver, rssi) AS SELECT badge, room, rssi FROM sighting;
    INSERT INTO sighting VALUES ('b', 'hall', -60.0, '2026-01-01T00:00:00Z'),
      ('b', 'lab', -70.0, '2026-01-01T00:00:12Z');""")
    (heard,) = session.run(HEARD)
    assert heard.rows == (("b", "lab", -70.0, 1),)
    session.close()
