// node build.mjs [FOLDER]: the page's scripts and style, by default into src/lastcall/ui/assets.
//
// ui.js is the page. tour.js, rollout.js and cluster.js are loaded when their view is opened (later.tsx): what they share with the
// page they take from it, so each module is in one file, and each file also works where there is no server.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
// Of Preact the page has what is named here: the build ends with an error when a view imports something else.
const PREACT = { preact: ["createElement", "Fragment"], "preact/hooks": ["useEffect", "useLayoutEffect", "useReducer", "useRef", "useState"] };
const SHARED = [...Object.keys(PREACT), "./command", "./lanes", "./later", "./said", "./scale", "./steps", "./store", "./texts"];

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
await build({ ...options, entryPoints: { ui: "src/main.tsx" } });
await build({ ...options, entryPoints: { tour: "src/tour.tsx", rollout: "src/rollout.tsx", cluster: "src/cluster.tsx" }, plugins: [shared] });
