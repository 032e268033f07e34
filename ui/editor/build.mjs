// Builds everything below ../static/vendor from the pinned packages, with their licences.
import { build } from "esbuild";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";

const out = "../static/vendor";
mkdirSync(`${out}/images`, { recursive: true });

await build({
  entryPoints: ["editor.js"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2020",
  legalComments: "none",
  outfile: `${out}/editor.js`,
});

const leaflet = "node_modules/leaflet/dist";
copyFileSync(`${leaflet}/leaflet.js`, `${out}/leaflet.js`);
copyFileSync(`${leaflet}/leaflet.css`, `${out}/leaflet.css`);
for (const image of readdirSync(`${leaflet}/images`)) copyFileSync(`${leaflet}/images/${image}`, `${out}/images/${image}`);
copyFileSync("node_modules/leaflet-ant-path/dist/leaflet-ant-path.js", `${out}/leaflet-ant-path.js`);

// One file with the licence of every package that ended up in a bundle.
const shipped = ["leaflet", "leaflet-ant-path", "codemirror"];
for (const scope of ["@codemirror", "@lezer", "@marijn"]) {
  if (existsSync(`node_modules/${scope}`)) for (const name of readdirSync(`node_modules/${scope}`)) shipped.push(`${scope}/${name}`);
}
shipped.push("crelt", "style-mod", "w3c-keyname");
const parts = shipped.filter((name) => existsSync(`node_modules/${name}/package.json`)).map((name) => {
  const facts = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  const file = readdirSync(`node_modules/${name}`).find((f) => /^licen[cs]e/i.test(f));
  const text = file ? readFileSync(`node_modules/${name}/${file}`, "utf8").trim() : `Licence: ${facts.license}`;
  return `${name} ${facts.version}\n\n${text}\n`;
});
writeFileSync(`${out}/LICENSES.txt`, parts.join(`\n${"-".repeat(78)}\n\n`));
