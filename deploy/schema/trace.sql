-- The relation of a recorded link trace. Time is the recording's own: a link is there while its
-- newest measurement is at most 30 minutes old and delivered at least half of the packets.
CREATE LINK SOURCE Link (src TEXT, dst TEXT, cost DOUBLE, pdr DOUBLE, ts TIMESTAMP, KEY (src, dst),
                         WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (wrapper = 'replay', ttl = '30 min');
