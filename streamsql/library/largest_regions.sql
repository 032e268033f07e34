-- The active region with the most triggered sensors; several when they are equally large.
--
-- Reads the library view region_sizes.
CREATE VIEW largest_regions (region, size) AS
  SELECT r.region, r.size
  FROM region_sizes r JOIN (SELECT MAX(size) AS size FROM region_sizes) AS l ON r.size = l.size;
