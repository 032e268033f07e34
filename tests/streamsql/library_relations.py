"""Relations that views of the library read, as a script."""

TABLES = """
CREATE TABLE reading (sensor TEXT, celsius DOUBLE);
CREATE TABLE sensors (sensor TEXT, x DOUBLE, y DOUBLE, level INTEGER);
CREATE TABLE region_seed (region TEXT, sensor TEXT);
CREATE TABLE parent (child TEXT, ancestor TEXT);
CREATE TABLE visitorposition (tag TEXT, point TEXT);
CREATE TABLE routingpoint (src TEXT, dst TEXT, distance DOUBLE);
CREATE TABLE freemachines (mid TEXT, point TEXT);
CREATE TABLE machines (mid TEXT);
CREATE TABLE machinesoftware (mid TEXT, software TEXT);
CREATE TABLE seatsensor (mid TEXT, rid TEXT, weightlevel DOUBLE);
CREATE TABLE roomsensor (rid TEXT, status TEXT, light DOUBLE);
CREATE TABLE machineload (mid TEXT, celsius DOUBLE);
"""
