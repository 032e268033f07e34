-- Contiguous regions of triggered sensors that grow from given seeds.
--
-- Reads triggered(sensor, x, y, level): the sensors that are triggered now, with their places in
-- metres, and region_seed(region, sensor): where a region begins. A seed that is triggered belongs
-- to its region; so does every triggered sensor less than 20 m from one that belongs, on the same
-- level. Both sensors of a step must be triggered.
CREATE RECURSIVE VIEW active_region (region, sensor) AS
  SELECT s.region, t.sensor FROM region_seed s JOIN triggered t ON t.sensor = s.sensor
  UNION
  SELECT a.region, far.sensor
  FROM active_region a
  JOIN triggered near ON near.sensor = a.sensor
  JOIN triggered far
    ON far.level = near.level AND distance(near.x, near.y, far.x, far.y) < 20.0;
