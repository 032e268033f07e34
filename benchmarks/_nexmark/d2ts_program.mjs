// Nexmark in D2TS, a differential dataflow in TypeScript: events on standard input, figures on output.
//
// node d2ts_program.mjs FOLDER   where FOLDER holds node_modules/@electric-sql/d2ts
//
// Input: JSON {"query": name, "batches": [[event, ...], ...], "timed": [first, one past the last]},
// an event being [kind, i0, i1, i2, ts, expires, s0, s1, s2]. The view is kept, as the product does.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join as path } from "node:path";
import { pathToFileURL } from "node:url";

const found = createRequire(path(process.argv[2], "here.js")).resolve("@electric-sql/d2ts");
const { D2, MultiSet, MessageType, map, filter, join, reduce, count, consolidate, output } = await import(
  pathToFileURL(found)
);

const [PERSON, AUCTION, BID] = [0, 1, 2];
const given = JSON.parse(readFileSync(0, "utf8"));
const graph = new D2({ initialFrontier: 0 });
const feed = graph.newInput();
const kind = (k) => feed.pipe(filter((e) => e[0] === k));

function statistics(prices) {
  let total = 0;
  let low = 0;
  let least = Infinity;
  let most = -Infinity;
  let volume = 0;
  for (const [price, times] of prices) {
    total += times;
    volume += price * times;
    if (price < 10000) low += times;
    least = Math.min(least, price);
    most = Math.max(most, price);
  }
  return [[[total, low, least, most, volume / total, volume], 1]];
}

function highest(values) {
  let best = -Infinity;
  for (const [value] of values) best = Math.max(best, value);
  return [[best, 1]];
}

function average(values) {
  let sum = 0;
  let times = 0;
  for (const [value, weight] of values) {
    sum += value * weight;
    times += weight;
  }
  return [[sum / times, 1]];
}

function view(query) {
  const byId = (e) => [e[1], e];
  switch (query) {
    case "q1":
      return kind(BID).pipe(map((b) => [b[1], b[2], 0.908 * b[3], b[4]]));
    case "q2":
      return kind(BID).pipe(
        filter((b) => b[1] % 123 === 0),
        map((b) => [b[1], b[3]]),
      );
    case "q3": {
      const near = kind(PERSON).pipe(
        filter((p) => ["OR", "ID", "CA"].includes(p[8])),
        map(byId),
      );
      return kind(AUCTION).pipe(
        filter((a) => a[3] === 10),
        map((a) => [a[2], a]),
        join(near, "inner"),
        map(([, [a, p]]) => [p[6], p[7], p[8], a[1]]),
      );
    }
    case "q4":
      return kind(AUCTION).pipe(
        map(byId),
        join(kind(BID).pipe(map(byId)), "inner"),
        filter(([, [a, b]]) => b[4] >= a[4] && b[4] <= a[5]),
        map(([id, [a, b]]) => [`${id} ${a[3]}`, b[3]]),
        reduce(highest),
        map(([key, price]) => [key.split(" ")[1], price]),
        reduce(average),
      );
    case "q12":
      return kind(BID).pipe(
        map((b) => [`${b[2]} ${Math.floor(b[4] / 10000000)}`, 0]),
        count(),
      );
    case "q17":
      return kind(BID).pipe(
        map((b) => [b[1], b[3]]),
        reduce(statistics),
      );
    case "q20": {
      const wanted = kind(AUCTION).pipe(
        filter((a) => a[3] === 10),
        map(byId),
      );
      return kind(BID).pipe(
        map(byId),
        join(wanted, "inner"),
        map(([, [b, a]]) => [b[1], b[2], b[3], b[4], a[6], a[2]]),
      );
    }
    default:
      throw new Error(`no program for ${query}`);
  }
}

const rows = new Map();
view(given.query).pipe(
  consolidate(),
  output((message) => {
    if (message.type !== MessageType.DATA) return;
    for (const [row, weight] of message.data.collection.getInner()) {
      const key = JSON.stringify(row);
      const times = (rows.get(key) ?? 0) + weight;
      if (times) rows.set(key, times);
      else rows.delete(key);
    }
  }),
);
graph.finalize();

const took = [];
given.batches.forEach((batch, version) => {
  const began = performance.now();
  feed.sendData(version, new MultiSet(batch.map((event) => [event, 1])));
  feed.sendFrontier(version + 1);
  graph.run();
  took.push((performance.now() - began) / 1000);
});
let total = 0;
for (const times of rows.values()) total += times;
const [first, last] = given.timed;
console.log(JSON.stringify({ seconds: took.slice(first, last), rows: total }));
