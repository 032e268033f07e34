-- Try me: pando run docs/examples/first.sql --local
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE);
CREATE SOURCE seat (mid TEXT, weight DOUBLE, ts TIMESTAMP, KEY (mid)) WITH (ttl = '90 s');

INSERT INTO link VALUES ('a', 'b', 1.0), ('b', 'c', 2.0), ('c', 'a', 1.0), ('c', 'b', 5.0);
INSERT INTO seat VALUES ('m1', 71.5, '2026-01-01T08:00:00Z'), ('m2', 0.3, '2026-01-01T08:00:30Z');

-- Who reaches whom; the library view of that name is the same recursion.
WITH RECURSIVE reach(src, dst) AS (
  SELECT src, dst FROM link
  UNION
  SELECT l.src, r.dst FROM link l JOIN reach r ON l.dst = r.src)
SELECT src, dst FROM reach;

-- A link goes: what rested on it goes, what has another way stays.
DELETE FROM link WHERE src = 'c' AND dst = 'b';
SELECT * FROM cheapest_path;

-- Readings live for 90 seconds of event time.
SELECT mid, weight FROM seat WHERE weight > 5.0;
ADVANCE TIME TO '2026-01-01T08:01:40Z';
SELECT mid, weight FROM seat;
