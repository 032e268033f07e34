"""The extent of a site's plan."""

from building.model.site_model import Site


def plan_bounds(site: Site) -> tuple[float, float, float, float]:
    """Return x0, y0, x1, y1 of everything in the plan in metres; zeros for an empty site."""
    boxes = [space.polygon.bounds for space in site.spaces]
    boxes += [(mote.x, mote.y, mote.x, mote.y) for mote in site.motes]
    if not boxes:
        return (0.0, 0.0, 0.0, 0.0)
    lows_x, lows_y, highs_x, highs_y = zip(*boxes, strict=True)
    x0, y0, x1, y1 = min(lows_x), min(lows_y), max(highs_x), max(highs_y)
    return (round(x0, 3), round(y0, 3), round(x1, 3), round(y1, 3))
