// What scripts of others put into the page: Leaflet's plug-in, and the plan that the console draws (/map/plan.js).
import type * as Leaflet from "leaflet";

declare module "leaflet" {
  namespace polyline {
    function antPath(places: LatLngExpression[], options: PolylineOptions & Record<string, unknown>): Polyline;
  }
}

declare global {
  interface Window {
    pandoPlan?: { map: Leaflet.Map; levels: Record<string, Leaflet.FeatureGroup> };
    pandoMap?: object;
  }
}
