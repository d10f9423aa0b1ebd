/* Bundles src/ into dist/, which the wheel holds: whoever uses skillup needs no Node.js.
   `--check` writes nothing and fails if dist/ is not what src/ makes. */
import { readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const here = new URL(".", import.meta.url).pathname;
// Every report carries the licence of what it is drawn with.
const licence = (await readFile(`${here}node_modules/chartist/LICENSE-MIT`, "utf-8")).trim();
const built = await build({
  absWorkingDir: here,
  entryPoints: { viewer: "src/main.js" },
  bundle: true,
  format: "iife",
  globalName: "SK",
  minify: true,
  charset: "utf8",
  target: "es2022",
  banner: { js: `/*! Charts: Chartist.\n${licence} */` },
  outdir: "dist",
  write: false,
});

const check = process.argv.includes("--check");
for (const { path, text } of built.outputFiles) {
  if (!check) await writeFile(path, text);
  else if ((await readFile(path, "utf-8").catch(() => "")) !== text) {
    console.error(`${path} is not what src/ makes: run \`npm ci && npm run build\` in ${here}`);
    process.exitCode = 1;
  }
}
