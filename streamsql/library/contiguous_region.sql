-- Contiguous regions of triggered sensors, without seeds: a region is named by the first of its
-- sensors in text order.
--
-- Reads triggered(sensor, x, y, level). Every sensor starts with its own name and hands the smallest
-- name it has seen to triggered sensors less than 20 m away on the same level.
CREATE VIEW contiguous_region (region, sensor) AS
  WITH RECURSIVE label (region, sensor) AS (
    SELECT sensor, sensor FROM triggered
    UNION
    SELECT a.region, far.sensor
    FROM label a
    JOIN triggered near ON near.sensor = a.sensor
    JOIN triggered far
      ON far.level = near.level AND distance(near.x, near.y, far.x, far.y) < 20.0)
  SELECT MIN(region), sensor FROM label GROUP BY sensor;
