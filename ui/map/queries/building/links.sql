SELECT src, dst, cost FROM Link
