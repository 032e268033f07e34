-- How many triggered sensors the largest active region has; no row while there is no region.
--
-- Reads the library view region_sizes.
CREATE VIEW largest_region (size) AS
  SELECT MAX(size) FROM region_sizes HAVING COUNT(*) > 0;
