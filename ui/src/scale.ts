// Where in the picture a moment lies: true to scale, or stretched where much happens.

import type { Story } from "./types";

export interface Scale {
  from: number;
  to: number;
  /** The share of the width at which a moment lies. */
  place: (at: number) => number;
  /** The moment that lies there. */
  moment: (share: number) => number;
  /** Moments that get a label, where there is room for so many. */
  ticks: (most: number) => number[];
}

/** Piecewise straight from one list of numbers to another, both ascending. */
function between(from: number[], to: number[]): (value: number) => number {
  const last = from.length - 1;
  return (value) => {
    if (value <= from[0]!) return to[0]!;
    if (value >= from[last]!) return to[last]!;
    let [low, high] = [0, last];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (from[middle]! <= value) low = middle;
      else high = middle;
    }
    return to[low]! + ((to[high]! - to[low]!) * (value - from[low]!)) / (from[high]! - from[low]!);
  };
}

const round = (value: number): number => Number(value.toFixed(9));

export function even(from: number, to: number): Scale {
  const ticks = (most: number) => {
    const rough = (to - from) / most;
    const ten = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * ten).find((each) => each >= rough) ?? rough;
    const found: number[] = [];
    for (let index = Math.ceil(from / step); index * step <= to; index++) found.push(round(index * step));
    return found;
  };
  return { from, to, place: between([from, to], [0, 1]), moment: between([0, 1], [from, to]), ticks };
}

const [LEAST, SAME, MOST_LINES] = [0.012, 1e-5, 200];

/** The time between two events has a width that grows with its cube root: 30 s is ten times as wide as 30 ms. */
export function stretched(story: Story): Scale {
  const end = Math.max(story.end, story.gone ?? 0, story.start + 0.001);
  const instants = story.lanes.flatMap((lane) => [...lane.marks.map((mark) => mark.at), ...lane.lines.slice(0, MOST_LINES), ...lane.bars.flatMap((bar) => [bar.start, bar.end ?? end])]);
  const times = [story.start];
  for (const at of instants.sort((a, b) => a - b)) if (at - times[times.length - 1]! >= SAME && end - at >= SAME) times.push(at);
  times.push(end);
  const widths = times.slice(1).map((at, index) => Math.cbrt((at - times[index]!) / (end - story.start)));
  const sum = widths.reduce((a, b) => a + b);
  const least = sum * Math.min(LEAST, 0.5 / widths.length);
  const whole = sum + least * widths.length;
  let soFar = 0;
  const places = [0, ...widths.map((width) => (soFar += (width + least) / whole))];
  const place = between(times, places);
  return { from: story.start, to: end, place, moment: between(places, times), ticks: (most) => roundNumbers(place, story.start, end, most) };
}

/** The more digits a mark has, the more room it needs. */
const room = (at: number): number => [1, 1, 1.3, 2, 3][String(Math.abs(at)).replace(".", "").replace(/^0+|0+$/g, "").length] ?? 4;

/** Rounder numbers first; finer ones fill what room is left where the axis is stretched. */
function roundNumbers(place: (at: number) => number, start: number, end: number, most: number): number[] {
  const chosen: number[] = [];
  const length = end - start;
  for (let power = 1e6; power >= 1e-4; power /= 10) {
    for (const step of [5 * power, 2 * power, power]) {
      if (step > length || step < length / 1e5) continue;
      if (length / step > 20 * most) return chosen;
      for (let index = Math.ceil(start / step - 1e-9); index <= end / step + 1e-9; index++) {
        const at = round(index * step);
        if (chosen.every((other) => Math.abs(place(other) - place(at)) >= room(at) / most)) chosen.push(at);
      }
    }
  }
  return chosen;
}

export function tickWords(at: number): string {
  return at && Math.abs(at) < 0.9995 ? `${Number((at * 1000).toFixed(3))} ms` : `${at} s`;
}
