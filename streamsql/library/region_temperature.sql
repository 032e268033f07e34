-- The mean temperature of every active region, and how many of its sensors it is the mean of.
--
-- Reads the library view active_region and reading(sensor, celsius): what each sensor read last.
CREATE VIEW region_temperature (region, celsius, sensors) AS
  SELECT a.region, AVG(r.celsius), COUNT(r.celsius)
  FROM active_region a JOIN reading r ON r.sensor = a.sensor
  GROUP BY a.region;
