"""Models of the places Pando watches, and the plain files the services read about them.

A site is made here (the sample building, an OSM indoor map, a radio link trace), gets a walking
graph and gateways, and is written once into a data directory. The running services read those files
only; none of them imports this package.
"""
