/* Bundles src/ into dist/, which the wheel holds: whoever uses skillup needs no Node.js.
   `--check` writes nothing and fails if dist/ is not what src/ makes; `--test` runs the unit tests. */
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const here = new URL(".", import.meta.url).pathname;
const UNUSED = /(^decode-named-character-reference|\/(html-flow|html-text|definition|character-reference|autolink|setext-underline)\.js)$/;
const withoutUnused = {
  name: "without-unused",
  setup: ({ onResolve }) =>
    onResolve({ filter: UNUSED }, () => ({ path: join(here, "src/text/references.ts") })),
};

const common = {
  absWorkingDir: here,
  bundle: true,
  charset: "utf8",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "error",
  plugins: [withoutUnused],
};

async function test() {
  const folder = await mkdtemp(join(here, "dist", "test-"));
  const names = await readdir(join(here, "test"));
  const entryPoints = names.filter((name) => name.endsWith(".ts")).map((name) => `test/${name}`);
  try {
    await build({ ...common, entryPoints, outdir: folder, format: "esm", platform: "node", outExtension: { ".js": ".mjs" } });
    const files = (await readdir(folder)).map((name) => join(folder, name));
    process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/* Every report carries the licences of what is in it. */
async function licences(paths) {
  const names = paths.flatMap((path) => /node_modules\/([^/]+)/.exec(path)?.[1] || []);
  const texts = new Map();
  for (const name of new Set(names)) {
    const folder = join(here, "node_modules", name);
    const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
    const text = (await readFile(join(folder, file), "utf-8")).replace(/\s+/g, " ").replace(/"/g, "'");
    const [, rights, body] = /(Copyright .*?) (Permission is|Redistribution and.*)/.exec(text);
    const key = body.startsWith("Perm") ? text.slice(text.indexOf("Permission is")) : body;
    const whole = key.trim().toLowerCase();
    const known = texts.get(whole) || { text: key.trim(), names: new Map() };
    known.names.set(rights, [...(known.names.get(rights) || []), name]);
    texts.set(whole, known);
  }
  const list = (names) => [...names].map(([rights, of]) => `${of.join(", ")}: ${rights}`).join("\n");
  return [...texts.values()].map(({ text, names }) => `${list(names)}\n${text}`).join("\n");
}

async function bundle(check) {
  const built = await build({
    ...common,
    entryPoints: ["src/app.tsx", "src/styles/index.css"],
    entryNames: "viewer",
    format: "iife",
    globalName: "SK",
    minify: true,
    metafile: true,
    outdir: "dist",
    write: false,
  });
  const used = Object.values(built.metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs));
  const bundled = used.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([path]) => path);
  const notice = `/*!\n${await licences(bundled)}\n*/\n`;
  for (const { path, text: code } of built.outputFiles) {
    const text = path.endsWith(".js") ? notice + code : code;
    if (!check) await writeFile(path, text);
    else if ((await readFile(path, "utf-8").catch(() => "")) !== text) {
      console.error(`${path} is not what src/ makes: run \`npm ci && npm run build\` in ${here}`);
      process.exitCode = 1;
    }
  }
}

if (process.argv.includes("--test")) await test();
else await bundle(process.argv.includes("--check"));
