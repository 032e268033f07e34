-- Windows over event time: pando run docs/examples/windows.sql --local
CREATE SOURCE temperature (room TEXT, celsius DOUBLE, ts TIMESTAMP);

INSERT INTO temperature VALUES
  ('lab', 21.0, '2026-01-01T08:00:00Z'), ('hall', 19.0, '2026-01-01T08:00:20Z'),
  ('lab', 23.0, '2026-01-01T08:00:40Z'), ('hall', 18.0, '2026-01-01T08:01:00Z'),
  ('lab', 25.0, '2026-01-01T08:01:10Z');

-- The last minute, counted back from the newest reading.
SELECT room, AVG(celsius) AS celsius, COUNT(*) AS readings
FROM temperature [RANGE 1 MINUTE] GROUP BY room;

-- The newest reading of each room, and the newest two of all.
SELECT room, celsius FROM temperature [PARTITION BY room ROWS 1];
SELECT room, celsius FROM temperature [ROWS 2];

-- The same minute, but looked at every half minute only: still as of 08:01:00.
SELECT room, MAX(celsius) AS highest FROM temperature [RANGE 1 MINUTE SLIDE 30 SECONDS] GROUP BY room;

-- A reading that arrives late counts by the time it was taken.
INSERT INTO temperature VALUES ('lab', 40.0, '2026-01-01T08:00:50Z');
SELECT room, MAX(celsius) AS highest FROM temperature [RANGE 1 MINUTE] GROUP BY room;

-- Time passes, and readings leave.
ADVANCE TIME BY '45 s';
SELECT room, MAX(celsius) AS highest FROM temperature [RANGE 1 MINUTE] GROUP BY room;
