// node build.mjs [FOLDER]: the page's scripts and style, by default into src/lastcall/ui/assets.
//
// ui.js is the page. tour.js, rollout.js and cluster.js are loaded when their view is opened (later.tsx): what they share with the
// page they take from it, so each module is in one file, and each file also works where there is no server.
import { build } from "esbuild";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
// Of Preact the page has what is named here: the build ends with an error when a view imports something else.
const PREACT = { preact: ["createElement", "Fragment"], "preact/hooks": ["useEffect", "useLayoutEffect", "useReducer", "useRef", "useState"] };
const SHARED = [...Object.keys(PREACT), "./command", "./lanes", "./later", "./said", "./scale", "./steps", "./store", "./texts"];

// `import { page } from "catalogue"`: one part of every language's texts, by language. esbuild leaves the other parts out.
const TEXTS = fileURLToPath(new URL("../src/lastcall/ui/catalogue/", import.meta.url));
const catalogue = {
  name: "catalogue",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^catalogue$/ }, () => ({ path: "catalogue", namespace: "catalogue" }));
    onLoad({ filter: /./, namespace: "catalogue" }, () => {
      const texts = readdirSync(TEXTS).sort().map((name) => [name.replace(".json", ""), JSON.parse(readFileSync(TEXTS + name, "utf8"))]);
      const part = (key) => JSON.stringify(Object.fromEntries(texts.map(([language, each]) => [language, each[key]])));
      return { contents: Object.keys(texts[0][1]).map((key) => `export const ${key} = ${part(key)};`).join("\n") };
    });
  },
};

const shared = {
  name: "shared",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /./ }, ({ path }) => (SHARED.includes(path) ? { path, namespace: "shared" } : undefined));
    onLoad({ filter: /./, namespace: "shared" }, ({ path }) => {
      const from = `globalThis.lastcall[${JSON.stringify(path)}]`;
      return { contents: path in PREACT ? `export const { ${PREACT[path].join()} } = ${from}` : `module.exports = ${from}` };
    });
  },
};

const options = {
  absWorkingDir: here,
  outdir: process.argv[2] ?? "../src/lastcall/ui/assets",
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: "es2022",
  legalComments: "none",
  jsxFactory: "createElement",
  jsxFragment: "Fragment",
  tsconfigRaw: {},
  inject: ["src/jsx.ts"],
  banner: { js: "/* Made of ui/ by `make ui`; with Preact (MIT). */", css: "/* Made of ui/ by `make ui`. */" },
};
await build({ ...options, entryPoints: { ui: "src/main.tsx" }, plugins: [catalogue] });
await build({ ...options, entryPoints: { tour: "src/tour.tsx", rollout: "src/rollout.tsx", cluster: "src/cluster.tsx" }, plugins: [catalogue, shared] });
