// The picture of a Pod's end: lanes on one time axis, up to the moment `at`; predictions are dashed.

import { useEffect, useRef, useState } from "preact/hooks";
import { Taken, textWidth } from "./labels";
import { even, type Scale, stretched, tickWords } from "./scale";
import { t } from "./texts";
import type { Bar, Lane, Mark, Next, Story } from "./types";

const LANE = 46;
export const TOP = 26;

export interface LanesProps {
  story: Story;
  at: number;
  live: boolean;
  chosen: number | null;
  choose: (n: number) => void;
  /** Time is stretched where much happens; of what goes on, it is not. */
  stretch?: boolean;
  zoom?: number;
}

export function seconds(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** What the seconds of a story count from. */
export function since(story: Story): string {
  return t(!story.zero ? "since.first" : story.zero === "TerminationObserved" ? "since.end" : "since.delete");
}

/** `now` is on the story's axis: what is yet to come is not before it. */
export function nextWords(next: Next, now: number): string {
  const what = t(`next.${next.what}`, { c: next.container, d: next.detail }).trim();
  const earliest = next.latest === null ? Math.max(next.earliest, now) : Math.min(Math.max(next.earliest, now), next.latest);
  if (next.latest === null) return `${what} (${t("from", { a: seconds(earliest) })})`;
  const when =
    next.latest - earliest < 0.001
      ? t("at", { a: seconds(next.latest) })
      : t("between", { a: seconds(earliest), b: seconds(next.latest) });
  return `${what} (${when})`;
}

/** Where the picture begins. What lies long before the end stands at its edge: on the axis it would leave the end no room. */
export function beginning(story: Story): number {
  const first = Math.min(story.start, 0);
  if (!story.zero) return first;
  const length = Math.max(story.end, story.now * Number(story.ongoing), ...story.next.map((each) => each.latest ?? each.earliest));
  return Math.max(first, -Math.max(leastOf(story), length / 4));
}

/** The shortest axis, in seconds: what goes on would shake on a shorter one, and what is over is as long as it was. */
const leastOf = (story: Story): number => (story.ongoing ? 1 : 0.001);

/** From where to where the picture goes. It grows with time, by steps, so that it does not shake; in the end it fits. */
export function domain(story: Story, at: number): [number, number] {
  const begin = beginning(story);
  const to = Math.max(at, story.end, ...story.next.map((each) => each.latest ?? each.earliest), begin + leastOf(story));
  const unit = 10 ** Math.floor(Math.log10(to - begin)) / 5;
  return [begin, story.ongoing ? begin + Math.ceil((to - begin) / unit + 0.2) * unit : to + (to - begin) * 0.03];
}

/** On which axis a story is drawn. */
export function scaleOf({ story, at, live, stretch }: Pick<LanesProps, "story" | "at" | "live" | "stretch">): Scale {
  if (stretch && !story.ongoing) return stretched(story);
  return even(...domain(story, live ? at : Math.max(at, story.end)));
}

/** What a bar is stands in its texture, too: a short one has no room for its name, and color alone tells not everybody. */
const TEXTURES: Record<string, string> = { preStop: "hook", drain: "drain", overrun: "over", terminating: "over", waiting: "wait", notReady: "wait", serving: "serve", unused: "free" };

export function Textures() {
  return (
    <>
      <pattern id="t-hook" width="8" height="8" patternUnits="userSpaceOnUse"><path d="M-2 2 L2 -2 M0 8 L8 0 M6 10 L10 6" /></pattern>
      <pattern id="t-drain" width="7" height="7" patternUnits="userSpaceOnUse"><circle cx="2" cy="2" r="1" /><circle cx="5.5" cy="5.5" r="1" /></pattern>
      <pattern id="t-over" width="7" height="7" patternUnits="userSpaceOnUse"><path d="M0 0 L7 7 M7 0 L0 7" /></pattern>
      <pattern id="t-serve" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 3 H6" /></pattern>
      <pattern id="t-free" width="10" height="10" patternUnits="userSpaceOnUse"><path d="M0 0 L10 10" /></pattern>
      <pattern id="t-wait" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M1 0 V6" /></pattern>
    </>
  );
}

const GLYPHS: Record<string, string> = {
  signal: "M0 -9 L8 6 L-8 6 Z",
  kill: "M-7 -7 L7 7 M7 -7 L-7 7",
  exit: "M-6 -6 H6 V6 H-6 Z",
  good: "M0 -6 A6 6 0 1 0 0.01 -6 Z",
  bad: "M0 -8 L8 0 L0 8 L-8 0 Z",
  step: "M0 -5 A5 5 0 1 0 0.01 -5 Z",
  detail: "M0 -3 A3 3 0 1 0 0.01 -3 Z",
};

/** The width of what `ref` is given to, in pixels. */
export function useWidth(): [{ current: SVGSVGElement | null }, number] {
  const ref = useRef<SVGSVGElement | null>(null);
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const look = new ResizeObserver(() => setWidth(Math.max(200, element.clientWidth || 900)));
    look.observe(element);
    return () => look.disconnect();
  }, []);
  return [ref, width];
}

const PAD = 12;

/** A part of a bar, in its color and its texture. */
export function Fill({ kind, open, ...box }: { kind: string; open?: boolean; x: number | string; width: number | string; y: number; height: number; rx?: number; children?: preact.ComponentChildren }) {
  const { children, ...place } = box;
  return (
    <>
      <rect class={`bar b-${kind}${open ? " open" : ""}`} {...place}>{children}</rect>
      {TEXTURES[kind] && <rect class="texture" fill={`url(#t-${TEXTURES[kind]})`} {...place} />}
    </>
  );
}

interface Word { key: string; x: number; y: number; text: string; kind: string }

export function Lanes({ story, at, live, chosen, choose, stretch, zoom = 1 }: LanesProps) {
  const [ref, full] = useWidth();
  const scale = scaleOf({ story, at, live, ...(stretch ? { stretch } : {}) });
  const { from, to } = scale;
  const x = (value: number) => PAD + scale.place(value) * (full - 2 * PAD);
  const width = (a: number, b: number) => Math.max(1.5, x(b) - x(a));
  const height = TOP + story.lanes.length * LANE + 8;
  const causes = new Map(story.steps.map((step) => [step.n, step.cause]));
  const titles = new Map(story.steps.map((step) => [step.n, `${step.n}. ${seconds(step.at)} s ${step.actor}: ${step.text}`]));
  const place = new Map<number, [number, number]>();
  story.lanes.forEach((lane, row) => {
    for (const mark of lane.marks) place.set(mark.n, [x(mark.at), TOP + row * LANE + 29]);
  });
  const labelOf = (mark: Mark) => (mark.at < from && mark.label ? `‹ ${mark.label} (${seconds(mark.at)} s)` : mark.label);
  const arrows: [number, number][] = [];
  for (let n = chosen; n !== null && n !== undefined && arrows.length < 50; ) {
    const cause: number | null = causes.get(n) ?? null;
    if (cause !== null) arrows.push([cause, n]);
    n = cause;
  }
  for (const step of story.steps) if (chosen !== null && step.cause === chosen) arrows.push([chosen, step.n!]);
  const ends = (each: Bar): [boolean, number] => {
    const open = each.end === null || each.end > at;
    return [open, open ? at : (each.end as number)];
  };
  const bar = (each: Bar, row: number) => {
    if (each.start > at) return null;
    const [open, end] = ends(each);
    return (
      <g key={`${each.kind}${each.start}`}>
        <Fill kind={each.kind} open={open} x={x(each.start)} width={width(each.start, end)} y={TOP + row * LANE + 19} height={20} rx={3}><title>{each.label}</title></Fill>
      </g>
    );
  };
  const rowOf = (next: Next) => {
    const wanted = (lane: Lane) => (next.container ? lane.kind === "container" && lane.name === next.container : lane.actor === "apiserver");
    return story.lanes.findIndex(wanted);
  };
  const coming = live ? story.next.filter((each) => rowOf(each) >= 0 && each.what !== "held") : [];
  const words = story.lanes.flatMap((lane, row): Word[] => {
    const found: Word[] = [];
    const taken = new Taken(full);
    const lines = [TOP + row * LANE + 13, TOP + row * LANE + 33];
    const name = textWidth(`${lane.name} ${lane.detail}`) + 10;
    if (zoom === 1) taken.take(0, 0, name);
    const marks = lane.marks.filter((mark) => mark.at <= at);
    for (const mark of marks) taken.take(1, x(mark.at) - 8, x(mark.at) + 8);
    for (const mark of marks) {
      if (!mark.label) continue;
      const label = labelOf(mark);
      const [mid, wide] = [x(mark.at), textWidth(label)];
      const where = taken.place(label, [[1, mid + 9], [0, mid - 4], [1, mid - 9 - wide], [0, mid + 4 - wide], ...(mid < name ? ([[0, name]] as [0, number][]) : [])]);
      if (where) found.push({ key: `m${mark.n}`, x: where[1], y: lines[where[0]]!, text: label, kind: "mark-label" });
    }
    for (const each of coming) {
      const text = each.what === "kill" ? "SIGKILL?" : each.what === "term" ? `${each.detail || t("stopSignal")}?` : "";
      if (!text || rowOf(each) !== row) continue;
      const end = x(each.latest ?? to);
      const where = taken.place(text, [[0, end - 4 - textWidth(text)], [0, end + 2]]);
      if (where) found.push({ key: `n${each.what}`, x: where[1], y: lines[where[0]]!, text, kind: "foretold-label" });
    }
    for (const each of lane.bars) {
      if (each.start > at) continue;
      const [open, end] = ends(each);
      const text = open ? each.label.replace(/ [\d.]+ m?s$/, "") : each.label;
      const start = taken.within(text, Math.max(x(each.start), PAD) + 5, x(end) - 2);
      if (start !== null) found.push({ key: `b${each.kind}${each.start}`, x: start, y: lines[1]!, text, kind: "bar-label" });
    }
    return found.map((word) => ({ ...word, key: `${row}${word.key}` }));
  });
  const names = story.lanes.map((lane, row) => (
    <text key={`${row}${lane.name}`} class="lane-name" x="2" y={TOP + row * LANE + 13}>
      {lane.name} <tspan class="lane-detail">{lane.detail}</tspan>
    </text>
  ));
  return (
    <>
    {zoom > 1 && <svg class="lanes names" width="100%" height={height} style={{ marginBottom: -height }} aria-hidden="true">{names}</svg>}
    <svg ref={ref} class="lanes" width={`${zoom * 100}%`} height={height} role="img" aria-label={`${t("picture")}: ${story.namespace}/${story.name}, ${story.words}`}>
      <defs>
        <Textures />
        <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
          <path class="arrow-head" d="M0 0 L8 4 L0 8 Z" />
        </marker>
      </defs>
      {scale.ticks(Math.max(3, full / 130)).map((tick) => {
        const last = x(tick) + textWidth(tickWords(tick)) + 9 > full;
        return <g key={tick}>
          <line class={tick === 0 ? "tick zero" : "tick"} x1={x(tick)} x2={x(tick)} y1={TOP - 6} y2={height} />
          <text class="tick-label" x={x(tick)} dx={last ? -3 : 3} y="14" text-anchor={last ? "end" : "start"}>{tickWords(tick)}</text>
        </g>;
      })}
      {story.lanes.map((lane, row) => (
        <g key={`${lane.kind}${lane.name}${lane.detail}`}>
          <line class="track" x1="0" x2="100%" y1={TOP + row * LANE + 29} y2={TOP + row * LANE + 29} />
          {lane.bars.map((each) => bar(each, row))}
          {lane.lines.filter((line) => line <= at).map((line, index) => (
            <line key={index} class="output" x1={x(line)} x2={x(line)} y1={TOP + row * LANE + 21} y2={TOP + row * LANE + 37} />
          ))}
        </g>
      ))}
      {zoom === 1 && names}
      {story.grace !== null && story.grace > 0 && story.grace < to && (
        <g class="grace"><line class="grace-over" x1={x(story.grace)} x2={x(story.grace)} y1={TOP - 6} y2={height} /><title>{t("graceOver")}</title></g>
      )}
      {coming.map((each) => {
        const begin = Math.max(at, each.earliest);
        return (
          <g key={each.what + each.container} class={`predicted p-${each.what}`}>
            <rect x={x(begin)} width={width(begin, Math.max(begin, each.latest ?? to))} y={TOP + rowOf(each) * LANE + 21} height="16" rx="3" />
          </g>
        );
      })}
      {arrows.map(([a, b]) => {
        const [start, end] = [place.get(a), place.get(b)];
        return start && end ? <line key={b} class="cause" x1={start[0]} y1={start[1]} x2={end[0]} y2={end[1]} marker-end="url(#arrow)" /> : null;
      })}
      {story.lanes.map((lane, row) =>
        lane.marks.filter((mark) => mark.at <= at).map((mark) => (
          <svg key={mark.n} x={x(mark.at)} y={TOP + row * LANE + 29} overflow="visible" class={`mark m-${mark.glyph}${mark.n === chosen ? " chosen" : ""}`} onClick={() => choose(mark.n)}>
            <path d={GLYPHS[mark.glyph] ?? GLYPHS.step!} />
            <title>{titles.get(mark.n)}</title>
          </svg>
        )),
      )}
      {words.map((word) => <text key={word.key} class={word.kind} x={word.x} y={word.y}>{word.text}</text>)}
      <line class={live ? "now" : "now paused"} x1={x(at)} x2={x(at)} y1="0" y2={height} />
    </svg>
    </>
  );
}
