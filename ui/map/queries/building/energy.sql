SELECT mid, watts FROM EnergyMeter
