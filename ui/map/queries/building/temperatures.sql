SELECT rid, ROUND(AVG(celsius), 1) AS celsius FROM Temperature [RANGE 1 MINUTE] GROUP BY rid
