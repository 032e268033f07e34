SELECT p.mid, p.task, ROUND(SUM(p.cpu / t.cpu), 3) AS share
FROM Process p
JOIN (SELECT mid, SUM(cpu) AS cpu FROM Process WHERE cpu > 0.0 GROUP BY mid) t ON t.mid = p.mid
WHERE p.cpu > 0.0
GROUP BY p.mid, p.task
