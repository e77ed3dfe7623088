// What esbuild makes of tags. TypeScript checks them by preact/jsx-runtime, which is larger.

export { createElement, Fragment } from "preact";
