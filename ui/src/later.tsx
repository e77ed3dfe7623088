// Views in files of their own, which are loaded when they are first looked at.

import type { FunctionComponent } from "preact";
import { useEffect, useReducer } from "preact/hooks";
import type { Saved } from "./saved";
import type { Recorded } from "./tour-data";
import type { Pod } from "./types";

/** What the files give. */
export interface Views {
  tour?: FunctionComponent<{ id: string; recorded?: Recorded | undefined }>;
  lesson?: FunctionComponent<{ rule: string }>;
  rollout?: FunctionComponent;
  reports?: FunctionComponent<{ saved: Saved }>;
  history?: FunctionComponent;
  act?: FunctionComponent<{ pod: Pod; grace: string; setGrace: (seconds: string) => void }>;
  facts?: FunctionComponent<{ pod: Pod }>;
}

export const views: Views = {};

const FILES = { tour: "tour.js", lesson: "tour.js", rollout: "rollout.js", reports: "rollout.js", act: "cluster.js", facts: "cluster.js", history: "cluster.js" };
const loading = new Map<string, Promise<unknown>>();
const own = document.currentScript as HTMLScriptElement | null;

interface Policy {
  createScriptURL(address: string): string;
}

/** The one address that the page ever makes a script of: a file beside its own. */
const policy = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } }).trustedTypes?.createPolicy("lastcall", {
  createScriptURL: (name) => {
    if (!Object.values(FILES).includes(name)) throw new TypeError(name);
    return new URL(name, own?.src).href;
  },
});

function load(file: string): Promise<unknown> {
  let going = loading.get(file);
  if (!going) {
    going = new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = policy ? policy.createScriptURL(file) : new URL(file, own?.src).href;
      script.onload = done;
      script.onerror = () => (loading.delete(file), failed(new Error(file)));
      document.head.append(script);
    });
    loading.set(file, going);
  }
  return going;
}

/** The view, once its file is there; null until then. */
export function useView<K extends keyof Views>(name: K | null): Views[K] | null {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    if (name && !views[name]) load(FILES[name]).then(again, again);
  }, [name]);
  return name ? (views[name] ?? null) : null;
}
