SELECT tag, ARG_MAX(detector, strength) AS detector FROM RfidBeacon GROUP BY tag
