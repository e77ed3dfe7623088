// Requests over the lanes of the Pods' ends.

import { seconds, Textures } from "./lanes";
import { LATENCY, LatencyStrip } from "./rollout_latency";
import { r } from "./rollout_texts";
import type { Lost, Picture, RolloutPod, Strip } from "./rollout_types";
import { even } from "./scale";

const TOP = 22;
const STRIP = 74;
const LANE = 50;
/** Of a strip of lines: its name, and a line. */
const [NAME, PITCH] = [18, 7];
const heightOf = (strip: Strip): number => (strip.tracks.length ? Math.max(STRIP, NAME + strip.tracks.length * PITCH + 4) : STRIP) + (strip.latency.length ? LATENCY : 0);

/** What became of requests has a shape below its column, too: columns are thin, and color alone tells not everybody. */
const GLYPHS = { lost: "M0 -4 L4 3 L-4 3 Z", moved: "M0 -2.5 A2.5 2.5 0 1 0 0.01 -2.5 Z" } as const;

/** Of this picture alone; those of the lanes are beside them. */
function OwnTextures() {
  return (
    <>
      <pattern id="t-lost" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 0 L6 6 M6 0 L0 6" /></pattern>
      <pattern id="t-moved" width="5" height="5" patternUnits="userSpaceOnUse"><path d="M0 2.5 H5" /></pattern>
    </>
  );
}

interface Props {
  shown: Picture;
  label: string;
  predicted?: boolean;
  /** Another picture of the page has them already. */
  textures?: boolean;
}

/** What lasts has a line each. */
function Tracks({ strip, top, x, wide }: { strip: Strip; top: number; x: (at: number) => string; wide: (a: number, b: number) => string }) {
  const words = (track: Strip["tracks"][number][number]) => `${r(track.became)}, ${seconds(track.from)} s – ${seconds(track.to)} s${track.messages ? `, ${r("messages", { n: track.messages })}` : ""}`;
  return (
    <>
      {strip.tracks.map((row, index) => row.map((track, at) => {
        const box = { x: x(track.from), width: wide(track.from, track.to), y: top + NAME + index * PITCH, height: PITCH - 1 };
        return <g key={`${index} ${at}`}><rect class={`r-${track.became}`} {...box}><title>{words(track)}</title></rect>{track.became !== "answered" && <rect class="texture" fill={`url(#t-${track.became})`} {...box} />}</g>;
      }))}
    </>
  );
}

export function RolloutPicture({ shown, label, predicted, textures = !predicted }: Props) {
  const from = Math.min(shown.start, 0);
  const to = Math.max(shown.end, from + 1);
  const part = (value: number) => (Math.min(Math.max(value, from), to) - from) / (to - from);
  const x = (value: number) => `${(part(value) * 100).toFixed(3)}%`;
  const wide = (a: number, b: number) => `${Math.max(0.12, (part(b) - part(a)) * 100).toFixed(3)}%`;
  const known = new Set(shown.pods.map((pod) => pod.uid));
  const nowhere = shown.lost.filter((each) => !known.has(each.uid));
  const height = TOP + shown.strips.reduce((sum, each) => sum + heightOf(each), 0) + (shown.pods.length + (nowhere.length ? 1 : 0)) * LANE + 4;

  const strip = (which: Picture["strips"][number], top: number) => {
    const most = Math.max(1, ...which.columns.map(([, a, m, l, u]) => a + m + l + u));
    const room = STRIP - 30;
    let [total, lost] = [0, 0];
    const bars = which.columns.map(([column, a, m, l, u]) => {
      total += a + m + l + u;
      lost += l;
      const begin = shown.start + column * shown.column;
      const high = (count: number, least: number) => (count ? Math.max(least, (count / most) * room) : 0);
      const [red, orange, plain, empty] = [high(l, 7), high(m, 2), high(a, 2), high(u, 2)];
      const base = top + STRIP - 10;
      const bar = (kind: string, y: number, h: number, count: number) =>
        count > 0 && (
          <g key={kind}>
            <rect class={`r-${kind}`} x={x(begin)} width={wide(begin, begin + shown.column * 0.9)} y={y} height={h}>
              <title>{`${count} ${r(kind as "lost" | "notMeasured")}, ${seconds(begin)} s`}</title>
            </rect>
            {(kind === "lost" || kind === "moved") && <rect class="texture" fill={`url(#t-${kind})`} x={x(begin)} width={wide(begin, begin + shown.column * 0.9)} y={y} height={h} />}
          </g>
        );
      const glyph = (kind: "lost" | "moved") => (
        <svg key={`${kind} sign`} x={x(begin + shown.column * 0.45)} y={base + 4} overflow="visible"><path class={`r-sign r-sign-${kind}`} d={GLYPHS[kind]} /></svg>
      );
      return [bar("lost", base - red, red, l), bar("moved", base - red - orange, orange, m), bar("answered", base - red - orange - plain, plain, a), bar("notMeasured", base - red - orange - plain - empty, empty, u), l > 0 ? glyph("lost") : m > 0 && glyph("moved")];
    });
    return (
      <g key={which.kind}>
        <text class="lane-name" x="2" y={top + 13}>{r("requests", { k: which.kind })} <tspan class="lane-detail">{total}{lost ? `, ${lost} ${r("lost")}` : ""}</tspan></text>
        {which.tracks.length ? <Tracks strip={which} top={top} x={x} wide={wide} /> : bars}
        {which.latency.length > 0 && <LatencyStrip strip={which} shown={shown} top={top + heightOf(which) - LATENCY} x={x} wide={wide} />}
      </g>
    );
  };

  const marks = (lost: Lost[], top: number) => {
    const places = new Map<number, Lost[]>();
    for (const each of lost) {
      const place = Math.round(part(each.at) * 300);
      const those = places.get(place);
      if (those) those.push(each);
      else places.set(place, [each]);
    }
    return [...places].map(([place, those]) => (
      <svg key={place} x={`${(place / 3).toFixed(2)}%`} y={top + 40} overflow="visible">
        <path class="r-mark" d={GLYPHS.lost} />
        <title>{`${seconds(those[0]!.at)} s: ${those.reduce((sum, lost) => sum + lost.count, 0)} × ${those[0]!.how}, ${those[0]!.cause}${those[0]!.phase ? ` (${those[0]!.phase})` : ""}`}</title>
      </svg>
    ));
  };

  const pod = (each: RolloutPod, top: number) => {
    const end = each.exited ?? to;
    const term = Math.min(each.term ?? end, end);
    const hook = Math.min(each.hook ?? term, term);
    const bar = (kind: string, a: number, b: number, words: string, texture = "") =>
      b > a && (
        <g key={kind}>
          <rect class={`bar b-${kind}`} x={x(a)} width={wide(a, b)} y={top + 17} height="14" rx="3">
            <title>{`${words}: ${seconds(a)} s – ${seconds(b)} s`}</title>
          </rect>
          {texture && <rect class="texture" fill={`url(#t-${texture})`} x={x(a)} width={wide(a, b)} y={top + 17} height="14" rx="3" />}
        </g>
      );
    return (
      <g key={each.uid}>
        <text class="lane-name" x="2" y={top + 13}>{each.name}</text>
        {bar("ready", each.ready ?? hook, hook, r("ready"))}
        {each.hook !== null && bar("preStop", hook, term, r("hook"), "hook")}
        {each.term !== null && bar("drain", term, end, r("drain"), "drain")}
        {each.killed && each.exited !== null && (
          <svg x={x(each.exited)} y={top + 24} overflow="visible" class="mark m-kill"><path d="M-6 -6 L6 6 M6 -6 L-6 6" /><title>SIGKILL</title></svg>
        )}
        {each.routed !== null && (
          <rect class="r-routed" x={x(each.routed)} width={wide(each.routed, each.unrouted ?? to)} y={top + 33} height="4">
            <title>{`${r("routed")}${each.unrouted === null ? "" : ` – ${seconds(each.unrouted)} s`}`}</title>
          </rect>
        )}
        {marks(shown.lost.filter((lost) => lost.uid === each.uid), top)}
      </g>
    );
  };

  let top = TOP;
  const rows = [];
  for (const each of shown.strips) {
    rows.push(strip(each, top));
    top += heightOf(each);
  }
  for (const each of shown.pods) {
    rows.push(pod(each, top));
    top += LANE;
  }
  if (nowhere.length) {
    rows.push(<g key="nowhere"><text class="lane-name" x="2" y={top + 13}>{r("nowhere")}</text>{marks(nowhere, top)}</g>);
  }
  return (
    <>
      <svg class={predicted ? "lanes rollout foretold" : "lanes rollout"} width="100%" height={height} role="img" aria-label={label}>
        {textures && <defs><Textures /><OwnTextures /></defs>}
        {even(from, to).ticks(7).map((tick) => (
          <g key={tick}>
            <line class={tick === 0 ? "tick zero" : "tick"} x1={x(tick)} x2={x(tick)} y1={TOP - 6} y2={height} />
            {part(tick) < 0.96 && <text class="tick-label" x={x(tick)} dx="3" y="14">{`${tick} s`}</text>}
          </g>
        ))}
        {rows}
      </svg>
      {shown.controlTotal > 0 && <p class="hint not-counted">{r("control", { n: shown.controlTotal })}</p>}
      {shown.unmeasured > 0 && <p class="hint not-counted">{r("unmeasured", { n: shown.unmeasured })}</p>}
      <ul class="keys-of-picture">
        {(["answered", "moved", "lost", "notMeasured", "ready", "hook", "drain", "routed"] as const).map((each) => (
          (each !== "notMeasured" || shown.unmeasured > 0) && <li key={each}><Key of={each} /> {r(each)}</li>
        ))}
        {shown.pods.some((pod) => pod.killed) && <li><Key of="kill" /> SIGKILL</li>}
      </ul>
    </>
  );
}

const KEYS: Record<string, [string, string]> = { answered: ["r-answered", ""], notMeasured: ["r-notMeasured", ""], moved: ["r-moved", "moved"], lost: ["r-lost", "lost"], ready: ["bar b-ready", ""], hook: ["bar b-preStop", "hook"], drain: ["bar b-drain", "drain"] };

/** As it looks in the picture. */
function Key({ of }: { of: string }) {
  const [kind, texture] = KEYS[of] ?? ["", ""];
  return (
    <svg class="key rollout" width={of === "lost" || of === "moved" ? 32 : 20} height="14" aria-hidden="true">
      {kind && <rect class={kind} x="1" y="1" width="18" height="12" />}
      {texture && <rect class="texture" fill={`url(#t-${texture})`} x="1" y="1" width="18" height="12" />}
      {(of === "lost" || of === "moved") && <path class={`r-sign r-sign-${of}`} d={GLYPHS[of]} transform="translate(26 7)" />}
      {of === "routed" && <rect class="r-routed" x="1" y="5" width="18" height="4" />}
      {of === "kill" && <g class="mark m-kill"><path d="M4 2 L16 12 M16 2 L4 12" /></g>}
    </svg>
  );
}
