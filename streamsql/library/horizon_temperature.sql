-- The mean temperature that the nodes within five hops of each node read, and how many they are.
--
-- Reads the library view within_radius and node_reading(node, celsius): what each node
-- read last.
CREATE VIEW horizon_temperature (node, celsius, nodes) AS
  SELECT w.src, AVG(r.celsius), COUNT(r.celsius)
  FROM within_radius w JOIN node_reading r ON r.node = w.dst
  GROUP BY w.src;
