"""The queries of Linear Road as the CQL paper writes them, and the same for DuckDB.

Where the paper puts a window on a derived stream (vehicles that enter a segment) the text here
reads the reports themselves: a report of now enters if the one before it was elsewhere. DuckDB
computes from all reports, and reads the time of the answer from a table.
"""

from dataclasses import dataclass

SCRIPT = """
CREATE SOURCE pos (car INTEGER, speed INTEGER, road INTEGER, dir INTEGER, x INTEGER, ts TIMESTAMP);
CREATE VIEW active AS
  SELECT DISTINCT l.car, l.road, l.dir, l.x / 5280 AS seg
  FROM pos [RANGE 30 SECONDS] AS a JOIN pos [PARTITION BY car ROWS 1] AS l ON a.car = l.car;
CREATE VIEW seg_vol AS
  SELECT road, dir, seg, COUNT(*) AS cars FROM active GROUP BY road, dir, seg;
CREATE VIEW seg_avg_speed AS
  SELECT road, dir, x / 5280 AS seg, AVG(speed) AS speed FROM pos [RANGE 5 MINUTES]
  GROUP BY road, dir, x / 5280;
CREATE VIEW stopped AS
  SELECT car, road, dir, MAX(x) AS x FROM pos [PARTITION BY car ROWS 4]
  GROUP BY car, road, dir HAVING COUNT(DISTINCT x) = 1 AND COUNT(*) = 4;
CREATE VIEW acc_seg AS
  SELECT DISTINCT s.road, s.dir, s.x / 5280 AS seg
  FROM stopped s JOIN active a ON a.car = s.car
  GROUP BY s.road, s.dir, s.x HAVING COUNT(*) >= 2;
CREATE VIEW toll AS
  SELECT v.road, v.dir, v.seg, 2 * (v.cars - {free}) * (v.cars - {free}) AS toll
  FROM seg_vol v JOIN seg_avg_speed s ON s.road = v.road AND s.dir = v.dir AND s.seg = v.seg
  WHERE s.speed < 40.0 AND v.cars > {free} AND NOT EXISTS (
    SELECT 1 FROM acc_seg c WHERE c.road = v.road AND c.dir = v.dir
      AND c.seg BETWEEN v.seg - 4 AND v.seg + 4);
CREATE VIEW entry AS
  SELECT e.car, e.road, e.dir, e.x / 5280 AS seg FROM pos [NOW] AS e
  WHERE NOT EXISTS (SELECT 1 FROM pos [PARTITION BY car ROWS 2] AS p
    WHERE p.car = e.car AND p.ts < e.ts AND p.x / 5280 = e.x / 5280);
"""
"""`{free}`: cars in a segment for which nothing is to be paid; 150 in the paper."""

PEER = """
CREATE TABLE pos (
  car BIGINT, speed BIGINT, road BIGINT, dir BIGINT, x BIGINT, ts BIGINT);
CREATE TABLE clock (now BIGINT);
CREATE VIEW newest AS SELECT *, ROW_NUMBER() OVER (PARTITION BY car ORDER BY ts DESC) AS n
  FROM pos;
CREATE VIEW active AS SELECT DISTINCT l.car, l.road, l.dir, l.x // 5280 AS seg
  FROM newest l SEMI JOIN (SELECT car FROM pos WHERE ts > (SELECT now - 30000000 FROM clock)) a
  ON a.car = l.car WHERE l.n = 1;
CREATE VIEW seg_vol AS
  SELECT road, dir, seg, COUNT(*) AS cars FROM active GROUP BY road, dir, seg;
CREATE VIEW seg_avg_speed AS
  SELECT road, dir, x // 5280 AS seg, AVG(speed) AS speed FROM pos
  WHERE ts > (SELECT now - 300000000 FROM clock) GROUP BY road, dir, x // 5280;
CREATE VIEW stopped AS SELECT car, road, dir, MAX(x) AS x FROM newest WHERE n <= 4
  GROUP BY car, road, dir HAVING COUNT(DISTINCT x) = 1 AND COUNT(*) = 4;
CREATE VIEW acc_seg AS SELECT DISTINCT s.road, s.dir, s.x // 5280 AS seg
  FROM stopped s JOIN active a ON a.car = s.car
  GROUP BY s.road, s.dir, s.x HAVING COUNT(*) >= 2;
CREATE VIEW toll AS SELECT v.road, v.dir, v.seg, 2 * (v.cars - {free}) * (v.cars - {free}) AS toll
  FROM seg_vol v JOIN seg_avg_speed s ON s.road = v.road AND s.dir = v.dir AND s.seg = v.seg
  WHERE s.speed < 40.0 AND v.cars > {free} AND NOT EXISTS (
    SELECT 1 FROM acc_seg c WHERE c.road = v.road AND c.dir = v.dir
      AND c.seg BETWEEN v.seg - 4 AND v.seg + 4);
CREATE VIEW entry AS SELECT e.car, e.road, e.dir, e.x // 5280 AS seg FROM pos e
  WHERE e.ts // 1000000 = (SELECT now // 1000000 FROM clock) AND NOT EXISTS (
    SELECT 1 FROM newest p WHERE p.n <= 2 AND p.car = e.car AND p.ts < e.ts
      AND p.x // 5280 = e.x // 5280);
"""


@dataclass(frozen=True, slots=True)
class RoadQuery:
    """One standing query; its text is the same for both."""

    name: str
    what: str
    text: str


QUERIES = (
    RoadQuery("cars", "CurCarSeg: where active cars are", "SELECT car, road, dir, seg FROM active"),
    RoadQuery("volume", "SegVol: active cars by segment", "SELECT * FROM seg_vol"),
    RoadQuery("speed", "SegAvgSpeed: of five minutes", "SELECT * FROM seg_avg_speed"),
    RoadQuery("accidents", "AccSeg: two cars stand still together", "SELECT * FROM acc_seg"),
    RoadQuery("tolls", "toll by congested segment without accident", "SELECT * FROM toll"),
    RoadQuery(
        "charges",
        "TollStr: cars that enter now, and what they pay",
        "SELECT e.car, e.seg, t.toll FROM entry e JOIN toll t "
        "ON t.road = e.road AND t.dir = e.dir AND t.seg = e.seg",
    ),
)
