// The lesson: its steps (tour.json), what versions change (tour-versions.json), and a run of a step.

import { chapters, claims, steps, titles, tour } from "catalogue";
import lesson from "./tour.json";
import compared from "./tour-versions.json";
import { fill, type Language, pick, type Text } from "./texts";
import type { Story } from "./types";

export interface TourStep {
  id: string;
  chapter: string;
  run: string;
  claims: string[];
  rule: string;
  versions?: boolean;
}

/** What a version of Kubernetes does in an experiment, by lastcall's virtual cluster. */
export interface OfVersion {
  error?: Text;
  hook?: [number, number] | null;
  term?: number | null;
  kill?: number | null;
  exit?: number | null;
  code?: number | null;
  gone?: number | null;
  phase?: string;
}

export interface Answer {
  what: string;
  command: string;
  code: number;
  seconds: number;
  message: string;
}

/** What src/lastcall/ui/tour/running.py tells of a run. `story` is there where no cluster is behind the page. */
export interface Run {
  experiment: string;
  namespace: string;
  state: "preparing" | "waiting" | "ending" | "done" | "failed" | "stopped";
  /** Why it did not come to the end, and the words of the runtime or the scheduler, where the error has others. */
  error: Text;
  words: string;
  pod: string;
  uid: string;
  answers: Answer[];
  claims: Record<string, { held: boolean | null; values: Record<string, string | number> }>;
  /** What keeps the Pod from being ready, while that is waited for. */
  waits: Text;
  /** Of a level, once it is done. */
  goal?: Check[] | null;
  verdict?: Text | null;
  /** Of a level that is done: which choices were right; and the number of the one that the learner had made. */
  happened?: boolean[] | null;
  guess?: number | null;
  /** What a level was run with. */
  manifest: string;
  grace: number | null;
  story?: Record<Language, Story>;
}

/** What src/lastcall/ui/tour/levels.py gives of a level; `runs` where no cluster is behind the page. */
export interface Level {
  id: string;
  rule: string;
  question: Text;
  expect: { ask: Text; choices: Text[] };
  hints: Text[];
  reached: Text;
  /** What is new in the rule. */
  says: Text;
  manifest: string;
  goal: Condition[];
  needs: string;
  versions: string;
  solved: string;
  grace: number | null;
  runs?: { given: Run; solved: Run };
}

export interface Condition {
  path: string;
  sign: string;
  want: string | number | null;
  says: Text;
}

/** A condition of a goal, and what was found. */
export interface Check extends Condition {
  left: string | number | object | null;
  right: string | number | object | null;
  held: boolean;
}

/** The runs of a page without a cluster (tools/make_tour.py). */
export interface Recorded {
  kubernetesVersion: string;
  runs: Record<string, Run>;
  levels: Level[];
}

export const STEPS: TourStep[] = lesson.steps;
export const VERSIONS = compared.versions;
/** The levels by their ids, in their order. */
export const LEVELS = lesson.levels;

export const chapterName = (chapter: string): string => pick(chapters)[chapter] ?? "";

export const levelTitle = (level: string): string => pick(titles)[level] ?? "";

/** Title and text of a step. */
export const saysOf = (step: TourStep): { title: string; text: string } => pick(steps)[step.id]!;

export type Word = keyof (typeof tour)[Language];

/** A word of the tour's own page; `{x}` is taken from `values`. */
export const w = (key: Word, values: Record<string, string | number> = {}): string => fill(pick(tour)[key], values);

export const claimSays = (claim: string): string => pick(claims)[claim]?.says ?? claim;

/** What was seen, in words; numbers are seconds, but for counts and codes, which are whole. */
export function claimSeen(claim: string, values: Record<string, string | number>): string {
  return (pick(claims)[claim]?.seen ?? "").replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (typeof value !== "number") return value ?? "?";
    return Number.isInteger(value) ? String(value) : value.toFixed(value < 0.1 ? 3 : value < 10 ? 2 : 1);
  });
}

export const versionsOf = (step: TourStep): Record<string, OfVersion> | null => (step.versions ? comparison(step.run) : null);

/** What the versions of Kubernetes do in an experiment. */
export const comparison = (run: string): Record<string, OfVersion> | null => (compared.runs as unknown as Record<string, Record<string, OfVersion>>)[run] ?? null;

const REACHED = "lastcall-levels";

const reachedLevels = (): string[] => (localStorage.getItem(REACHED) ?? "").split(" ");

/** Whether this browser has reached a level, on this page or before. */
export const isReached = (level: string): boolean => reachedLevels().includes(level);

export const setReached = (level: string): void => localStorage.setItem(REACHED, [...reachedLevels(), level].join(" "));

export const isGoing = (run: Run | undefined): boolean => !!run && ["preparing", "waiting", "ending"].includes(run.state);

/** The step that explains a rule, if there is one. */
export const lessonOf = (rule: string): TourStep | undefined => (rule ? STEPS.find((each) => each.rule === rule) : undefined);
