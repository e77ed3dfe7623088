// node build.mjs [FOLDER]: the page's script and style, by default into src/lastcall/ui/assets.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
await build({
  absWorkingDir: here,
  entryPoints: { ui: "src/main.tsx" },
  outdir: process.argv[2] ?? "../src/lastcall/ui/assets",
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: "es2022",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  banner: { js: "/* Made of web/ by `make web`; with Preact (MIT). */", css: "/* Made of web/ by `make web`. */" },
});
