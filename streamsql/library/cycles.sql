-- Nodes that lie on a cycle of links: those that reach themselves.
--
-- Reads the library view reachable.
CREATE VIEW cycles (node) AS
  SELECT src FROM reachable WHERE src = dst;
