-- The greatest bandwidth that some path offers between every two connected nodes.
--
-- Reads link(src, dst, bandwidth). A path is as wide as its narrowest link.
CREATE VIEW widest_path (src, dst, bandwidth) AS
  WITH RECURSIVE walk (src, dst, bandwidth) AS (
    SELECT src, dst, bandwidth FROM link
    UNION
    SELECT l.src, w.dst, LEAST(l.bandwidth, w.bandwidth)
    FROM link l JOIN walk w ON l.dst = w.src)
  SELECT src, dst, MAX(bandwidth) FROM walk GROUP BY src, dst;
