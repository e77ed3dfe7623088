// What lastcall ui answers (src/lastcall/ui: cells.py, story.py, predict.py).

import type { Evidence, Outcome, Severity } from "./published";

export interface Pod {
  namespace: string;
  name: string;
  uid: string;
  node: string;
  phase: string;
  ready: [number, number];
  isReady: boolean;
  restarts: number;
  reason: string;
  labels: Record<string, string>;
  owner: { kind: string; name: string } | null;
  ip: string;
  created: string;
  deletion?: { at: string; grace: number };
  stage?: string;
  /** Since when, if its end began before (ms of the epoch). */
  watched?: number;
  finalizers?: string[];
}

export interface Node {
  name: string;
  isReady: boolean;
  unschedulable: boolean;
  taints: string[];
  version: string;
}

export interface Workload {
  kind: string;
  namespace: string;
  name: string;
  wanted: number | null;
  /** Of a Job those that have succeeded, of a CronJob its Jobs under way. */
  ready: number;
  updated: number;
  /** Of a Job, as kubectl get says it. */
  state?: string;
  /** Of a CronJob. */
  schedule?: string;
  suspended?: boolean;
}

export interface End {
  uid: string;
  namespace: string;
  name: string;
  node: string;
  at: number;
  grace: number | null;
  gone: number | null;
  outcome: Outcome;
  words: string;
  exits: { container: string; code: number | null; signal: string | null }[];
}

export interface Cluster {
  name: string;
  state: "connecting" | "running" | "away" | "over";
  server?: string;
  kubernetesVersion?: string;
  why?: string;
  mayWrite?: boolean;
  /** Asked for by the user. */
  readOnly?: boolean;
}

export interface Next {
  what: "hook" | "term" | "kill" | "gone" | "held";
  container: string;
  earliest: number;
  latest: number | null;
  rule: string;
  detail: string;
}

export interface Bar {
  kind: string;
  label: string;
  start: number;
  end: number | null;
}

export interface Mark {
  n: number;
  at: number;
  glyph: string;
  label: string;
}

export interface Lane {
  kind: "actor" | "endpoint" | "container" | "output";
  /** Whose lane it is, for one of an actor. */
  actor: string;
  name: string;
  detail: string;
  bars: Bar[];
  marks: Mark[];
  lines: number[];
}

export interface Step {
  /** Its number in the picture; null for one that is not there. */
  n: number | null;
  at: number;
  actor: string;
  container: string;
  kind: string;
  text: string;
  level: number;
  style: string;
  evidence: Evidence;
  rule: string;
  facts: [name: string, value: string][];
  cause: number | null;
}

export interface Story {
  uid: string;
  namespace: string;
  name: string;
  node: string;
  zero: string;
  zeroAt: number;
  now: number;
  start: number;
  end: number;
  grace: number | null;
  gone: number | null;
  ongoing: boolean;
  outcome: Outcome;
  words: string;
  verdict: string;
  /** Node, grace period, phase, how long it took, uid. */
  about: string;
  leftOut: number;
  lanes: Lane[];
  steps: Step[];
  /** Records that are not in the picture. */
  others: { title: string; notes: string[]; steps: Step[] }[];
  rules: Record<string, { explain: string; source: string }>;
  meanings: Record<string, string>;
  output: { at: number; container: string; text: string; err?: boolean; note?: boolean }[];
  lastWords: { title: string; lines: string[] }[];
  budget: { title: string; of: string; container: string; over: number; parts: { kind: string; words: string; share: number; time: string }[] } | null;
  containers: { name: string; kind: string; cells: string[] }[];
  findings: { id: string; severity: Severity; container: string; text: string; advice: string }[];
  notKnown: string[];
  why: string;
  next: Next[];
}
