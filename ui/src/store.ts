// What the browser knows of the cluster, kept up to date by one stream of events.

import { useEffect, useReducer } from "preact/hooks";
import type { Rollout } from "./rollout_types";
import type { Saved } from "./saved";
import { type Language, language, pick, t } from "./texts";
import type { Run } from "./tour-data";
import type { Cluster, End, Node, Pod, Story, Workload } from "./types";

type Items = Record<string, unknown>;

/** What the server says last, in one language. */
interface Last {
  stories: Story[];
  ends: Record<string, End>;
  rollout?: Rollout | null;
}

/** Pods whose cells take longer than a frame to look through. */
const MANY = 1000;

class Store {
  pods = new Map<string, Pod>();
  nodes = new Map<string, Node>();
  workloads = new Map<string, Workload>();
  ends = new Map<string, End>();
  tour = new Map<string, Run>();
  cluster: Cluster = { name: "", state: "connecting" };
  story: Story | null = null;
  storyAt = 0;
  connected = false;
  skew = 0;
  labels = "";
  /** Why the server has ended: with its cluster, or without it; "" while it is there. */
  ended: "" | "cluster" | "page" | "trace" | "file" = "";

  /** From when to when changes never came, in ms since the epoch: the page was behind more than the server keeps. */
  missed: [from: number, to: number] | null = null;

  /** The server's time of the latest message. */
  private heard = 0;

  /** The experiment that is shown, where the page is of a rollout. */
  rollout: Rollout | null = null;

  private source: EventSource | null = null;
  private pod = "";
  /** What stays when the server has ended. */
  private last: Record<Language, Last> | null = null;
  /** The story that was shown then, in the language that it came in. */
  private kept: Story | null = null;
  private again = 0;
  private listeners = new Set<() => void>();
  private asked = false;

  /** Whether the server has let the browser in. */
  private entered = false;

  /** The server has let the browser in: follow one Pod, or what a view has asked for meanwhile. */
  begin(pod: string): void {
    this.entered = true;
    this.pod ||= pod;
    this.tellAnew();
  }

  /** Follow the Pods that `labels` selects, and one Pod's story; "" for all, and for none. */
  follow(labels: string, pod: string): void {
    if (this.source && labels === this.labels && pod === this.pod) return;
    if (pod !== this.pod) this.story = null;
    this.labels = labels;
    this.pod = pod;
    this.tellAnew();
  }

  /** There never was a server: this is what a file has. */
  restore(saved: Saved): void {
    this.ended = "file";
    this.pod = saved.stories.length === 1 && !saved.reports ? "1" : "";
    this.last = { [language]: saved };
    this.show();
  }

  /** The reader has chosen another language, or another Pod: what the server tells is asked for again. */
  tellAnew(): void {
    if (this.ended) this.show();
    else if (this.entered) this.open();
  }

  /** What is left of the server, in the reader's language. */
  private show(): void {
    const { stories, ends, rollout } = pick(this.last!);
    const own = this.kept?.uid === this.pod ? this.kept : null;
    this.story = stories.find((each) => each.uid === this.pod) ?? own;
    for (const [key, end] of Object.entries(ends)) this.ends.set(key.slice("end/".length), end);
    this.rollout = rollout ?? this.rollout;
    this.changed();
  }

  private open(): void {
    this.source?.close();
    clearTimeout(this.again);
    const query = new URLSearchParams({ labels: this.labels, pod: this.pod, language });
    const source = (this.source = new EventSource(`/api/feed?${query}`));
    source.addEventListener("snapshot", (event) => this.items(event, true));
    source.addEventListener("changes", (event) => this.items(event, false));
    source.addEventListener("story", (event) => {
      this.story = JSON.parse((event as MessageEvent<string>).data) as Story;
      this.storyAt = performance.now();
      this.changed();
    });
    source.addEventListener("rollout", (event) => {
      this.rollout = JSON.parse((event as MessageEvent<string>).data) as Rollout;
      this.changed();
    });
    source.addEventListener("ended", (event) => {
      const { why, told } = JSON.parse((event as MessageEvent<string>).data) as { why: "cluster" | "page" | "trace"; told: Record<Language, Last> };
      source.close();
      this.ended = why;
      this.last = told;
      this.kept = this.story;
      this.show();
    });
    source.onopen = () => {
      this.connected = true;
      this.changed();
    };
    source.onerror = () => {
      this.connected = false;
      this.changed();
      if (source.readyState === EventSource.CLOSED && source === this.source) {
        this.again = window.setTimeout(() => this.open(), 2000);
      }
    };
  }

  private items(event: Event, anew: boolean): void {
    const { now, items, missing } = JSON.parse((event as MessageEvent<string>).data) as { now: number; items: Items; missing?: boolean };
    this.connected = true;
    if (missing) this.missed = [this.missed?.[0] ?? this.heard, now];
    this.heard = now;
    this.skew = now - Date.now();
    if (anew) for (const map of [this.pods, this.nodes, this.workloads, this.ends, this.tour]) map.clear();
    const maps: Record<string, Map<string, unknown>> = {
      pod: this.pods as Map<string, unknown>,
      node: this.nodes as Map<string, unknown>,
      workload: this.workloads as Map<string, unknown>,
      end: this.ends as Map<string, unknown>,
      tour: this.tour as Map<string, unknown>,
    };
    for (const [key, value] of Object.entries(items)) {
      const slash = key.indexOf("/");
      if (key === "cluster") this.cluster = value as Cluster;
      else if (value === null) maps[key.slice(0, slash)]?.delete(key.slice(slash + 1));
      else maps[key.slice(0, slash)]?.set(key.slice(slash + 1), value);
    }
    this.changed();
  }

  /** The cluster's time, in ms since the epoch. */
  now(): number {
    return Date.now() + this.skew;
  }

  /** Seconds on the story's axis. */
  storyNow(): number {
    if (!this.story) return 0;
    if (!this.story.ongoing || this.ended || this.cluster.state !== "running") return Math.max(this.story.end, this.story.gone ?? 0);
    return this.story.now + (performance.now() - this.storyAt) / 1000;
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** At most one drawing for a frame, however many changes come; of very many Pods three a second, so that it scrolls. */
  private changed(): void {
    if (this.asked) return;
    this.asked = true;
    const tell = () => {
      this.asked = false;
      for (const listener of this.listeners) listener();
    };
    const pause = document.hidden ? 200 : this.pods.size > MANY && !this.pod ? 350 : 0;
    if (pause) setTimeout(tell, pause);
    else requestAnimationFrame(tell);
  }
}

export const store = new Store();

/** Draw again when something has changed. */
export function useStore(): Store {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => store.subscribe(() => again(0)), []);
  return store;
}

/** Draw again `fps` times a second, while `on`. */
export function useTicks(on: boolean, fps: number): void {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    if (!on) return;
    const timer = setInterval(() => again(0), 1000 / fps);
    return () => clearInterval(timer);
  }, [on, fps]);
}

export const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** A path of the server, asked in the reader's language. */
export const inLanguage = (path: string, more: Record<string, string> = {}): string => `${path}?${new URLSearchParams({ ...more, language })}`;

/** Ask the server; the error is in its words and the reader's language. */
export async function ask<T>(path: string, body?: unknown): Promise<T> {
  const headers = { "Accept-Language": language };
  const response = await fetch(path, body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) }).catch(() => null);
  if (!response) throw new Error(t("lost"));
  const text = await response.text();
  if (!response.ok) throw new Error(text || `HTTP ${response.status}`);
  const told = JSON.parse(text) as T & { unread?: string };
  if (told.unread) throw new Error(told.unread);
  return told;
}
