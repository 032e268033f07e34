SELECT sensorid, MIN(regionid) AS region FROM HotRegion GROUP BY sensorid
