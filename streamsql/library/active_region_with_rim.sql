-- As active_region, with a rim: sensors that are not triggered but less than 20 m from one that is.
--
-- Reads triggered(sensor, x, y, level), region_seed(region, sensor) and
-- sensors(sensor, x, y, level): all sensors. Only the sensor a step starts from must be triggered.
CREATE RECURSIVE VIEW active_region_with_rim (region, sensor) AS
  SELECT s.region, t.sensor FROM region_seed s JOIN triggered t ON t.sensor = s.sensor
  UNION
  SELECT a.region, far.sensor
  FROM active_region_with_rim a
  JOIN triggered near ON near.sensor = a.sensor
  JOIN sensors far
    ON far.level = near.level AND distance(near.x, near.y, far.x, far.y) < 20.0;
