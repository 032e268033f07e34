// Builds everything in ui/static/vendor from the pinned packages, with their licences: `npm run vendor`.
import { build } from "esbuild";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const packages = here("../../node_modules");
const out = here("../static/vendor");
mkdirSync(`${out}/images`, { recursive: true });

await build({
  entryPoints: [here("editor.js")],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2020",
  legalComments: "none",
  outfile: `${out}/editor.js`,
});

const leaflet = `${packages}/leaflet/dist`;
copyFileSync(`${leaflet}/leaflet.js`, `${out}/leaflet.js`);
copyFileSync(`${leaflet}/leaflet.css`, `${out}/leaflet.css`);
for (const image of readdirSync(`${leaflet}/images`)) {
  copyFileSync(`${leaflet}/images/${image}`, `${out}/images/${image}`);
}
copyFileSync(`${packages}/leaflet-ant-path/dist/leaflet-ant-path.js`, `${out}/leaflet-ant-path.js`);

// One file with the licence of every package that ended up in a bundle.
const inScope = (scope) => {
  const folder = `${packages}/${scope}`;
  return existsSync(folder) ? readdirSync(folder).map((name) => `${scope}/${name}`) : [];
};
const shipped = ["leaflet", "leaflet-ant-path", "codemirror", ...["@codemirror", "@lezer", "@marijn"].flatMap(inScope)];
shipped.push("crelt", "style-mod", "w3c-keyname");
const parts = shipped
  .filter((name) => existsSync(`${packages}/${name}/package.json`))
  .map((name) => {
    const facts = JSON.parse(readFileSync(`${packages}/${name}/package.json`, "utf8"));
    const file = readdirSync(`${packages}/${name}`).find((f) => /^licen[cs]e/i.test(f));
    const text = file ? readFileSync(`${packages}/${name}/${file}`, "utf8").trim() : `Licence: ${facts.license}`;
    return `${name} ${facts.version}\n\n${text}\n`;
  });
writeFileSync(`${out}/LICENSES.txt`, parts.join(`\n${"-".repeat(78)}\n\n`));
