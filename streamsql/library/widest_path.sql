-- The greatest bandwidth that some path offers between every two connected nodes.
--
-- Reads channel(src, dst, bandwidth). A path is as wide as its narrowest channel.
CREATE VIEW widest_path (src, dst, bandwidth) AS
  WITH RECURSIVE walk (src, dst, bandwidth) AS (
    SELECT src, dst, bandwidth FROM channel
    UNION
    SELECT c.src, w.dst, LEAST(c.bandwidth, w.bandwidth)
    FROM channel c JOIN walk w ON c.dst = w.src)
  SELECT src, dst, MAX(bandwidth) FROM walk GROUP BY src, dst;
