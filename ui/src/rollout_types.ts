// What lastcall ui tells of a rollout (src/lastcall/ui/rollout: room.py, picture.py, values.py).

import type { CauseId, Disrupt, Load, Source, Verdict } from "./published";

export interface Values {
  sleep: number | null;
  grace: number;
  maxUnavailable: number | null;
  hops: Record<string, number>;
}

export interface RolloutPod {
  uid: string;
  name: string;
  ready: number | null;
  deleted: number | null;
  hook: number | null;
  term: number | null;
  exited: number | null;
  killed: boolean;
  routed: number | null;
  unrouted: number | null;
  pauses: [number, number][];
}

export interface Lost {
  id: number;
  at: number;
  kind: Load;
  how: string;
  pod: string;
  phase: string;
  cause: CauseId;
  /** Of the Pod that it was sent to; "" for none, and where that is not known. */
  uid: string;
  /** With those that were lost there at about the same time. */
  count: number;
}

export interface Track {
  from: number;
  to: number;
  became: "answered" | "moved" | "lost";
  messages: number;
}

export interface Strip {
  kind: Load;
  columns: [column: number, answered: number, moved: number, lost: number, unmeasured: number][];
  /** Of what lasts for seconds, in place of columns: rows of lines. */
  tracks: Track[][];
  /** Of good answers, in milliseconds. */
  latency: [column: number, median: number, most: number][];
}

export interface Picture {
  start: number;
  end: number;
  column: number;
  strips: Strip[];
  pods: RolloutPod[];
  lost: Lost[];
  causes: { count: number; atMost: string; kind: Load; how: string; means: string; cause: CauseId; why: string }[];
  totals: Record<string, number>;
  losses: Record<string, number>;
  controlTotal: number;
  unmeasured: number;
  controlLost: number;
}

export interface Forecast {
  number: number;
  hop?: string;
  /** By kind of request; null where no delay is safe. */
  edges?: Record<string, number | null>;
  most?: number;
  how?: "rule" | "virtual time";
  done: boolean;
  error?: string;
  patchText?: string;
  picture?: Picture;
}

export type Why = "" | "advice" | "search" | "page";

export interface Edge {
  predicted: { seconds: number | null; byKind: Record<string, number | null>; how: string };
  safe: number | null;
  unsafe: number | null;
  confirmed: boolean;
  disagreements: string[];
  trials: { seconds: number; lost: number; total: number }[];
}

/** What --find-safe has found so far (find_safe_report.py). */
export interface Search {
  sentence: string;
  hop: string;
  lag: Edge | null;
  preStopSleep: (Edge & { sentence: string; lag: number }) | null;
  done: boolean;
}

/** An experiment in a file that was saved (src/lastcall/experiment/rollout/html.py). */
export interface Report extends Picture {
  what: string;
  which: string;
  verdict: Verdict;
  sentence: string;
  about: string;
  notes: string[];
  patch: string;
  tables: { caption: string; head: string[]; rows: string[][] }[];
  /** How each old Pod ended: the key of its story, and words. */
  ends: { uid: string; words: string }[];
}

export interface Rollout extends Picture {
  number: number;
  phase: string;
  idle: boolean;
  began: boolean;
  what: string;
  service: string;
  disrupt: Disrupt;
  source: Source;
  now: number;
  verdict: Verdict | "";
  sentence: string;
  patch: string;
  command: string;
  error: string;
  /** How many runs come without being asked for here. */
  of: number;
  /** Why this one is made: "" it was asked for at the start. */
  why: Why;
  search: Search | null;
  /** Of a cluster of somebody else: its context, and what predicts in place of this page. */
  theirs: { context: string; here: string } | null;
  runs: { verdict: Verdict | ""; lost: number; total: number; propagation: string; why: Why }[];
  values: Values;
  replicas: number;
  leastUnavailable: number;
  canForecast: boolean;
  forecast: Forecast | null;
}
