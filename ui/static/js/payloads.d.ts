// What the console's API answers, and the rows of its own queries. The classes and functions named are in ui/api
// and ui/map; tests/ui/api/test_payload_types.py compares real answers of most of them with these types.

export type Value = null | boolean | number | string | Value[];
export type Row = Record<string, Value>;

export interface Column {
  name: string;
  type: string; // "" where it is not known
  unit?: string;
}

/** `change_object`: a row that came (diff > 0) or went. */
export interface Change<R = Row> {
  ts: string;
  diff: number;
  row: R;
  reading_ts?: string;
}

/** The event `snapshot` or `change` of queries. */
export interface Changes<R = Row> {
  query: string;
  changes: Change<R>[];
}

/** `query_object`. */
export interface Query {
  id: string;
  name: string;
  run: string; // what sites call it: the id of the first of all equal queries
  text: string;
  status: "starting" | "running" | "degraded" | "failed" | "stopped";
  origin: string;
  emit: string;
  version: number;
  columns: Column[];
  created: string;
  rows: number;
  changes: number;
  last_change: string | null;
  error: string;
  waiting_for: string[];
  warnings: string[];
  settled: boolean;
  display: string;
  subscription: { snapshot: boolean; progress: boolean; key: string[] };
}

/** The event `status` of a query that was stopped; of any other it is the whole query. */
export interface Stopped {
  query: string;
  status: "stopped";
  error: string;
}
export type Status = Query | Stopped;

/** What is wrong: `error_object`, a diagnosis, or what a script says itself. */
export interface Problem {
  message: string;
  hint?: string;
  code?: string;
  line?: number | null;
  column?: number | null;
  text?: string | null;
  carried_out?: string[];
  lost?: boolean; // the console does not answer
}

/** `diagnosis_object`. */
export interface Diagnosis {
  message: string;
  line: number;
  column: number;
  text: string;
  hint: string;
  severity: "error" | "warning";
  code: string;
}

export interface Validation {
  diagnoses: Diagnosis[];
  columns: string[];
  warnings: string[];
}

/** `result_object`; the shape of `data` depends on the statement. */
export interface Result<D = object> {
  kind: "query" | "rows" | "text" | "done";
  message: string;
  query: Query | null;
  columns: string[];
  rows: Value[][];
  text: string;
  data: D | null;
  warnings: string[];
}

/** The result of a question that is always answered with data. */
export interface Answered<D> extends Result<D> {
  data: D;
}

export interface Completion {
  label: string;
  kind: string;
  detail: string;
}

/** A part of EXPLAIN's JSON form. */
export interface PlanNode {
  text: string;
  inputs: PlanNode[];
}
/** What a fragment sends; null where nobody knows. */
export interface Rates {
  rows_per_second: number | null;
  messages_per_second: number | null;
  bytes_per_second: number | null;
  milliseconds: number | null;
}
/** `beyond` has the quantities outside of the estimate's range, with measurement by estimate. */
export interface Measured extends Rates {
  seconds: number;
  beyond: Record<string, number | null>;
  run: string | null;
}
export interface Fragment {
  id: string;
  engine: "gateway" | "base" | "static";
  method: string;
  sites: string[];
  consumer: string | null;
  readers: string[];
  plan: PlanNode;
  not_pushed: string[];
  estimated: Rates;
  measured?: Measured | null;
}
/** The run that a fragment is fed by, and its name there. */
export interface Fed {
  run: string;
  fragment: string;
}
/** `fed` is that of a running query, by fragment. */
export interface Explained {
  fragments: Fragment[];
  fed?: Record<string, Fed>;
  text: string[];
}

/** `node_object`: a node of the network of shared computations. */
export interface NetworkNode {
  node: string; // "17", or "17/f1" of a fragment
  run: string;
  fragment: string;
  kind: string;
  computes: string;
  sites: string[];
  sources: string[];
  reads: string[];
  readers: string[]; // the first of them
  more_readers: number;
  queries: { id: string; name: string }[]; // the first of those that may be seen
  direct: number; // of all queries whose answer it is
  resting: number; // of all queries that rest on it
  owner: string;
  kept: boolean;
  since: string;
  rows: number | null;
  messages_per_second: number | null;
  bytes_per_second: number | null;
}

export interface SharedNetwork {
  nodes: NetworkNode[];
  queries: number;
  hidden: number;
  unlisted: number;
}

/** A row of a source or table, with its key's columns. */
export interface BaseRow {
  source: string;
  key: string[];
  row: Row;
}

export interface Confidence {
  probability: number;
  exact: boolean;
  reason: string;
}

/** The answer to WHY. */
export interface Why {
  columns: string[];
  row: Row;
  holds: boolean;
  supports: BaseRow[][];
  complete: boolean;
  known: number;
  confidence: Confidence | null;
  notes: string[];
}

/** What would become of one query without some base rows. */
export interface Loss {
  query: string | null;
  columns: string[];
  rows: number;
  gone: Row[];
  come: Row[];
  gone_count: number;
  come_count: number;
  notes: string[];
  error?: undefined;
}
export interface Unanswered {
  query: string;
  error: string;
  gone_count?: undefined;
  come_count?: undefined;
}

/** The answer to WHAT IF. */
export interface WhatIf {
  deleted: BaseRow[];
  deleted_count: number;
  queries: (Loss | Unanswered)[];
  notes: string[];
}

export interface Connector {
  kind: string;
  streams: string[];
  readings: number;
  errors: number;
  last_error: string;
  note: string;
}

export interface Buffer {
  stored: number;
  bytes: number;
  dropped: number;
  hours_left: number | null;
}

/** A source that the catalog declares, as a gateway serves it. */
export interface DeclaredSource {
  source: string;
  version: number;
  endpoint: string;
  problem: string;
  rows: number;
  bad: number;
  last_bad: string;
}

export interface Endpoint {
  name: string;
  connector: string;
  listens: boolean; // payloads can be looked at before there are columns
  browses: boolean; // the device can be asked what it offers
}

export interface SiteState {
  site: string;
  role: string;
  online: boolean;
  freshness: string;
  ready: boolean;
  detail: string;
}

/** `site_object`. */
export interface Site extends SiteState {
  epoch: number;
  since: string;
  last_known: string | null;
  differences: string[];
  connection_problem: { reason: string; since: string; until: string | null } | null;
  clock_offset_ms: number | null;
  clock_error_ms: number;
  clock_corrected_ms: number;
  rooms: string[];
  sources: string[];
  sensors: number;
  connectors: Connector[];
  declared: DeclaredSource[];
  endpoints: Endpoint[];
  buffer: Buffer | null;
  counters: Record<string, number>;
}

export interface SiteSettings {
  scheduler: string;
  slice_ms: number | null;
  queue_rows: number;
  share_synopses: boolean;
  report_seconds: number;
}

/** `definition_object`; what is behind `columns` depends on the kind. */
export interface Definition {
  name: string;
  kind: "source" | "table" | "view" | "function" | "aggregate" | "display" | "alarm" | "sink";
  text: string;
  columns: Column[];
  library?: boolean;
  recursive?: boolean;
  refresh?: string;
  key?: string[];
  stream?: string;
  options?: Record<string, string>;
  result?: string;
  implementation?: string;
  floor?: number;
  x?: number;
  y?: number;
  title?: string;
  rows?: number;
  severity?: Severity;
  for_seconds?: number;
}

export type Severity = "info" | "warning" | "critical";

/** `alarm_row_object`. */
export interface AlarmRow {
  id: number;
  alarm: string;
  state: "waiting" | "raised" | "acknowledged" | "unknown" | "cleared";
  row: Row;
  since: string | null;
  raised: string | null;
  unknown: string | null;
  acknowledged: string | null;
  cleared: string | null;
}

/** `alarm_object`. */
export interface Alarm {
  alarm: string;
  severity: Severity;
  state: string;
  for_seconds: number;
  query: string;
  status: string;
  text: string;
  raised: number;
  waiting: number;
  unknown: number;
  unacknowledged: number;
  unlisted: number;
  dropped: number;
  away: string[];
  unsettled_since: string | null;
  since: string | null;
  rows: AlarmRow[];
}

export interface DeadLetter {
  key: Row | null;
  row: Row | null;
  reason: string;
  tries: number;
  given_up: string;
}

/** A row of SHOW SOURCES: `source_row`. */
export interface SourceServing {
  source: string;
  kind: string;
  columns: string;
  ttl: string;
  connector: string; // "" where none feeds it
  endpoint: string;
  version: number | null;
  gateways: string; // those that send its rows
  missing: string; // whose rows are missing, and why
}

/** `sink_object`. */
export interface Sink {
  sink: string;
  connector: "mqtt" | "webhook";
  endpoint: string;
  to: string;
  mode: "upsert" | "append";
  format: "json" | "senml";
  key: string[];
  discovery: string;
  units: Record<string, string>;
  query: string;
  query_status: string;
  text: string;
  status: "starting" | "running" | "failing";
  problem: string;
  delivered: number;
  waiting: number;
  unknown: number;
  dropped: number;
  last: string | null;
  dead_letters: DeadLetter[];
}

export interface AlarmCount {
  attention: number;
  raised: number;
  unknown: number;
  new: number;
  severity: Severity | null;
}

/** A query of a display, with the first rows of its answer. */
export interface Answer extends Query {
  total: number;
  first: Row[];
}

/** `with_rows`. */
export interface Display {
  name: string;
  title: string;
  floor: number;
  x: number;
  y: number;
  rows: number;
  queries: Answer[];
}

/** The event `layer` of the map. */
export interface LayerChanges {
  layer: string;
  snapshot: boolean;
  changes: Change[];
  more?: number; // of "declared": links that are not sent
}

/** The event `layers` of the map, by name. */
export type LayerStates = Record<string, { status: string; error: string; waiting_for: string[] }>;

/** The event `positions` of the map: the views and queries with positions, and the one that is followed. */
export interface PlacedOffer {
  offered: { key: string; title: string }[];
  followed: string;
  others: number; // rows that are not sent
}

// The map file (deploy/site/site_geojson.py): metres, x to the east and y to the north.

export type Point = [number, number];

interface Feature<T extends string, P, G> {
  type: "Feature";
  id: string;
  geometry: G;
  properties: P & { feature_type: T; id: string; level: number };
}
interface PointGeometry {
  type: "Point";
  coordinates: Point;
}
type AreaGeometry =
  | { type: "Polygon"; coordinates: Point[][] }
  | { type: "MultiPolygon"; coordinates: Point[][][] }
  | { type: "LineString"; coordinates: Point[] };

export interface SpaceProperties {
  name: string;
  kind: string;
  gateway: string | null;
  point: string | null;
}
export interface MachineProperties {
  room: string;
  host: string;
  cpu: string;
  cores: number;
  software: string[];
  gateway: string | null;
  point: string;
  is_host: boolean;
  simulated: boolean;
}
export interface SensorProperties {
  kind: string;
  room: string | null;
  mid: string | null;
  simulated: boolean;
  gateway: string | null;
}
export interface EdgeProperties {
  src: string;
  dst: string;
  distance: number;
  kind: string;
  wheelchair: boolean;
}

export type SiteFeature =
  | Feature<"space" | "outside", SpaceProperties, AreaGeometry>
  | Feature<"machine", MachineProperties, PointGeometry>
  | Feature<"sensor", SensorProperties, PointGeometry>
  | Feature<"mote", { room: string | null }, PointGeometry>
  | Feature<"routing_point", { room: string }, PointGeometry>
  | Feature<"edge", EdgeProperties, AreaGeometry>
  | Feature<"door" | "opening", object, AreaGeometry>;

export interface SiteFile {
  type: "FeatureCollection";
  pando: {
    name: string;
    levels: { ordinal: number; name: string }[];
    bounds: [Point, Point];
    origin: Point | null;
  };
  features: SiteFeature[];
}

/** `offered_object`: values of a device that belong together. */
export interface OfferedRecord {
  name: string;
  options: Record<string, string>;
  values: OfferedValue[];
}

export interface OfferedValue {
  name: string;
  address: string;
  type: string | null;
  unit: string;
  sample: Value;
}

/** `trial_object`: a source that is tried at a gateway. */
export interface Trial {
  id: string;
  gateway: string;
  columns: Column[];
  samples: TrialSample[]; // those that were not told yet
  heard: number;
  browses: boolean; // the device is asked what it offers
  offers: OfferedRecord[]; // when it is done
  dropped: number;
  notes: string[];
  problem: string;
  hint: string;
  done: boolean;
}

/** `mapped_object`: what a statement makes of a payload. */
export interface MappedPayload {
  rows: Row[];
  problems: string[];
  ignored: boolean;
}

/** `sample_object`. */
export interface TrialSample extends MappedPayload {
  arrival: string;
  topic: string;
  facts: Row;
  payload: string;
  is_text: boolean; // else it is in base64
  is_record: boolean;
  size: number;
  cut: boolean;
}

/** The answer of `/api/sources/try`. */
export interface Mapped {
  columns: Column[];
  samples: MappedPayload[];
}

/** `proposal_object`. */
export interface Proposal {
  name: string;
  title: string;
  text: string;
  topics: string[];
  samples: number;
  columns: Column[];
}

// Rows of the map's layers (ui/map/queries) and of its directions.

export type LayerRows = {
  seats: { mid: string; rid: string; taken: boolean };
  lights: { rid: string; status: string };
  temperatures: { rid: string; celsius: number | null };
  reservations: { rid: string; title: string; starts: string; ends: string };
  loads: {
    mid: string;
    cpu: number;
    memory: number | null;
    users: number | null;
    task: string | null;
    task_cpu: number;
    celsius: number | null;
  };
  energy: { mid: string; watts: number };
  tasks: { mid: string; task: string; share: number };
  visitors: { tag: string; detector: string };
  links: { src: string; dst: string; cost: number | null };
  declared: { src: string; dst: string; cost: number | null };
  regions: { sensorid: string; region: string };
  free: { mid: string; rid: string };
  positions: PlacedRow;
  places: PlacedRow;
};
/** Where a badge or a device is: in a room, at a point in metres, or both. */
export interface PlacedRow {
  id: string;
  room: string | null;
  floor: number | null;
  x: number | null;
  y: number | null;
  confidence: number | null;
}
export type Layer = keyof LayerRows;
export type RouteRow = { mid: string | null; distance: number; path: string | null };
export type HeardRow = { badge: string; receiver: string; rssi: number; readings: number };
export type PointRow = {
  point: string;
  room: string | null;
  floor: number | null;
  x: number | null;
  y: number | null;
  receivers: number;
};
export type PathRow = { cost: number; path: string | null };

// Rows of the system's relations, as the monitor selects them.

export interface OperatorRow {
  site: string;
  entity: string;
  operator: string;
  inputs: string;
  explained?: boolean; // made from EXPLAIN, not reported
  fed?: string; // the run that it runs for, where that feeds the one that is shown
}
export interface DecisionRow {
  id: number;
  ts: string;
  queries: string;
  reason: string;
  outcome: string;
  detail: string;
  plan_before: string;
  plan_after: string;
  bytes_before: number;
  bytes_after: number;
  measured_before: number | null;
  measured_after: number | null;
  switch_bytes: number | null;
  switch_seconds: number | null;
}
export interface StreamRow {
  ts: string;
  site: string;
  query: string;
  entity: string;
  kind: string;
  property: string;
  value: number;
}

// Gateways that administrators enrol.

export interface Enrolment {
  name: string;
  state: "provisioned" | "joined" | "revoked";
  made: string;
  made_by: string;
  token_until: string | null;
  joined: string | null;
  address: string;
  serial: string;
  valid_until: string | null;
  rotated: string | null;
  revoked: string | null;
}

export interface ProvisionedGateway {
  name: string;
  token: string;
  until: string;
}

// People.

export type Role = "viewer" | "analyst" | "operator" | "administrator";

export interface Account {
  name: string;
  role: Role;
  disabled: boolean;
  created: string;
  last_sign_in: string | null;
  provider: string | null;
}

export interface Grant {
  kind: string; // of the relation
  relation: string;
  to: string; // "user", "role" or "everybody"
  name: string;
  by: string;
  since: string;
}

export interface Grants {
  grants: Grant[];
  makers: Record<string, string>; // accounts, by what they made
}

export interface ApiToken {
  id: string;
  account: string;
  label: string;
  role: Role;
  created: string;
  expires: string | null;
  last_used: string | null;
  sources: string[] | null;
}

export interface Me {
  accounts: boolean;
  signed_in: boolean;
  name?: string;
  role?: Role;
  token?: string | null;
  account?: Account | null;
}

/** `table_object` of ui/api/resources/lake_routes.py. */
export interface LakeTable {
  table: string;
  namespace: "readings" | "rollups" | "system" | "tables";
  name: string;
  rows: number;
  bytes: number;
  files: number;
  small_files: number;
  snapshots: number;
  first: string | null;
  last: string | null;
  committed: string | null;
  columns: { name: string; type: string; words: string }[];
  keep: string;
  rollups: string[];
  problem: string;
}

/** `job_object` of ui/api/resources/lake_routes.py. */
export interface LakeJob {
  id: string;
  task: string;
  table: string;
  state: "waiting" | "running" | "done" | "failed" | "cancelled";
  share: number; // from 0 to 1
  began: string | null;
  ended: string | null;
  message: string;
}

/** `pipeline_of`: PipelineState of streamsql/wire/site_messages.py. */
export interface LakePipeline {
  running: boolean;
  batches: number;
  rows: number;
  rate: number;
  lag: number | null;
  batch_seconds: number | null;
  repeated: number;
  dead: number;
  waiting: number;
  waiting_bytes: number;
  last: string | null;
  problem: string;
  drift: string[];
  damaged: string[];
}

export interface LakeStatus {
  where: string;
  workers: string;
  tables: LakeTable[];
  more: number;
  jobs: LakeJob[];
  readers: Record<string, { kind: string; name: string }[]>; // by source
  pipeline: LakePipeline | null;
}

/** `sample_object` of ui/api/resources/lake_routes.py. */
export interface LakeSample {
  columns: string[];
  rows: Value[][];
  since: string | null;
  until: string | null;
  series: string[]; // `_from`, `_count`, then `_min`, `_max` and `_avg` of each number
  buckets: Value[][];
  cut: boolean;
}

/** `stored_object` of ui/api/resources/table_routes.py. */
export interface StoredTable {
  name: string;
  source: string;
  place: string;
  rows: number | null; // about
  bytes: number | null;
  read: string | null;
  refresh: number | null; // seconds
  columns: { name: string; type: string }[];
  problem: string;
  told: boolean; // whether changes are seen without reading it
}

/** `GET /api/tables`. */
export interface StoredTables {
  tables: StoredTable[];
  more: number;
  readers: Record<string, { kind: string; name: string }[]>; // by table
}

/** `figures_object` of ui/api/resources/table_routes.py. */
export interface ColumnFigures {
  name: string;
  nulls: number;
  distinct: number;
  least: string;
  greatest: string;
  bars: { label: string; count: number }[];
  others: number;
}

/** `GET /api/tables/NAME/sample`. */
export interface StoredSample {
  columns: string[];
  rows: Value[][];
  figures: ColumnFigures[];
  looked: number; // rows that the figures are of
  whole: boolean;
}

/** `past_object` of ui/api/resources/history_routes.py. */
export interface PastChange {
  ts: string;
  diff: number;
  row: Row;
  alarm: "waiting" | "raised" | "acknowledged" | "unknown" | "cleared" | null;
}

/** `trial_object` of ui/api/resources/history_routes.py. */
export interface HistoryTrial {
  id: string;
  maker: string;
  text: string;
  alarm: string;
  columns: Column[];
  since: string;
  until: string;
  at: string | null;
  share: number; // from 0 to 1
  readings: number;
  seconds: number;
  events: number;
  dropped: number;
  notes: string[];
  code: string;
  problem: string;
  hint: string;
  done: boolean;
}

// What a path answers.

export type GetAnswer<P extends string> = P extends "/api/queries" | `/api/queries?${string}`
  ? Query[]
  : P extends "/api/history/trials"
    ? HistoryTrial[]
    : P extends `/api/history/trials/${string}`
      ? HistoryTrial & { changes: PastChange[]; next: number }
      : P extends "/api/sites"
        ? Site[]
        : P extends "/api/me"
          ? Me
          : P extends "/api/accounts"
            ? Account[]
            : P extends "/api/tokens" | "/api/me/tokens"
              ? ApiToken[]
              : P extends "/api/grants"
                ? Grants
                : P extends "/api/fleet"
                  ? Enrolment[]
                  : P extends "/api/definitions"
                    ? Definition[]
                    : P extends "/api/sinks"
                      ? Sink[]
                      : P extends "/api/lake"
                        ? LakeStatus
                        : P extends "/api/lake/jobs"
                          ? LakeJob[]
                          : P extends `/api/lake/tables/${string}`
                            ? LakeSample
                            : P extends "/api/tables"
                              ? StoredTables
                              : P extends `/api/tables/${string}`
                                ? StoredSample
                                : P extends "/api/sources"
                                  ? SourceServing[]
                                  : P extends "/api/alarms/count"
                                    ? AlarmCount
                                    : P extends "/api/site.geojson"
                                      ? SiteFile
                                      : P extends `/api/queries/${string}/explain`
                                        ? Result<Explained>
                                        : P extends `/api/network${string}`
                                          ? SharedNetwork
                                          : P extends `/api/queries/${string}`
                                            ? Query
                                            : P extends `/api/sites/${string}/settings`
                                              ? SiteSettings
                                              : P extends `/api/sources/trials/${string}`
                                                ? Trial
                                                : P extends "/api/calibration/tables"
                                                  ? { missing: string[] }
                                                  : unknown;

export type PostAnswer<P extends string> = P extends "/api/statements"
  ? Result[]
  : P extends "/api/lake/jobs"
    ? LakeJob
    : P extends "/api/validate"
      ? Validation
      : P extends "/api/complete"
        ? Completion[]
        : P extends "/api/what-if"
          ? Answered<WhatIf>
          : P extends `/api/queries/${string}/why`
            ? Answered<Why>
            : P extends "/api/route" | "/api/path" | "/api/calibration/heard" | "/api/calibration/points"
              ? Query
              : P extends "/api/calibration"
                ? { point: string; receivers: number }
                : P extends "/api/calibration/tables"
                  ? { created: string[]; folder: string }
                  : P extends "/api/sources/trials"
                    ? Trial
                    : P extends "/api/sources/try"
                      ? Mapped
                      : P extends `/api/sources/trials/${string}/proposals`
                        ? Proposal[]
                        : unknown;

// What an element may hold: null, undefined and false are nothing.
export type Child = Node | string | number | false | null | undefined | readonly Child[];
