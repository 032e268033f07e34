"""Import of maps: OSM Simple Indoor Tagging in GeoJSON."""
