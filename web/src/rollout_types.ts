// What lastcall ui tells of a rollout (src/lastcall/ui/rollout: room.py, picture.py, values.py).

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
  kind: string;
  how: string;
  pod: string;
  phase: string;
  cause: string;
}

export interface Picture {
  start: number;
  end: number;
  column: number;
  strips: { kind: string; columns: [number, number, number, number][] }[];
  pods: RolloutPod[];
  lost: Lost[];
  causes: { count: number; how: string; means: string; cause: string; why: string }[];
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

export interface Rollout extends Picture {
  number: number;
  phase: string;
  idle: boolean;
  began: boolean;
  what: string;
  service: string;
  disrupt: string;
  source: string;
  now: number;
  verdict: string;
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
  runs: { verdict: string; lost: number; total: number; propagation: string; why: Why }[];
  values: Values;
  replicas: number;
  leastUnavailable: number;
  canForecast: boolean;
  forecast: Forecast | null;
}
