-- Which nodes are at most five hops away, and how many.
--
-- Reads link(src, dst). The bound on hops ends the recursion; for another radius, copy this text.
CREATE VIEW within_radius (src, dst, hops) AS
  WITH RECURSIVE walk (src, dst, hops) AS (
    SELECT src, dst, 1 FROM link
    UNION
    SELECT l.src, w.dst, w.hops + 1
    FROM link l JOIN walk w ON l.dst = w.src
    WHERE w.hops < 5)
  SELECT src, dst, MIN(hops) FROM walk GROUP BY src, dst;
