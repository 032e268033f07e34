"""The live map: a floor plan by folium, layers that are StreamSQL queries, directions."""
