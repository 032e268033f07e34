-- How many triggered sensors each active region has.
--
-- Reads the library view active_region.
CREATE VIEW region_sizes (region, size) AS
  SELECT region, COUNT(sensor) FROM active_region GROUP BY region;
