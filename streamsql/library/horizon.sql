-- How many different nodes each node has within its horizon of five hops.
--
-- Reads the library view within_radius.
CREATE VIEW horizon (node, nodes) AS
  SELECT src, COUNT(DISTINCT dst) FROM within_radius GROUP BY src;
