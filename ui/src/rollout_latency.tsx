// How long good answers took, below the columns of their requests: a bar from the median to the slowest, on a scale of powers of ten.

import { r } from "./rollout_texts";
import type { Picture, Strip } from "./rollout_types";

export const LATENCY = 64;
const [NAME, LEAST] = [18, 0.1];

const words = (ms: number): string => (ms < 999.5 ? `${Number(ms.toPrecision(3))} ms` : `${Number((ms / 1000).toPrecision(3))} s`);

interface Props {
  strip: Strip;
  shown: Picture;
  top: number;
  x: (at: number) => string;
  wide: (a: number, b: number) => string;
}

export function LatencyStrip({ strip, shown, top, x, wide }: Props) {
  const most = Math.max(...strip.latency.map(([, , each]) => each));
  const medians = strip.latency.map(([, median]) => median).sort((a, b) => a - b);
  const highest = Math.ceil(Math.log10(Math.max(most, 10 * LEAST)));
  const lowest = Math.floor(Math.log10(Math.max(LEAST, medians[0]!)));
  const y = (ms: number) => top + LATENCY - 4 - ((Math.log10(Math.max(ms, 10 ** lowest)) - lowest) / Math.max(1, highest - lowest)) * (LATENCY - NAME - 6);
  const powers = Array.from({ length: Math.max(1, highest - lowest) + 1 }, (_, index) => 10 ** (lowest + index));
  return (
    <g class="latency">
      <text class="lane-name" x="2" y={top + 12}>{r("latency", { k: strip.kind })} <tspan class="lane-detail">{r("latencyWords", { m: words(medians[(medians.length - 1) >> 1]!), x: words(most) })}</tspan></text>
      {powers.map((each) => <line key={each} class="track" x1="0" x2="100%" y1={y(each)} y2={y(each)} />)}
      {[powers[0]!, powers[powers.length - 1]!].map((each, index) => <text key={index} class="tick-label r-power" x="100%" dx="-3" y={y(each) + (index ? 10 : -2)}>{words(each)}</text>)}
      {strip.latency.map(([column, median, slowest]) => {
        const begin = shown.start + column * shown.column;
        return (
          <g key={column}>
            <rect class="r-latency" x={x(begin)} width={wide(begin, begin + shown.column * 0.9)} y={y(slowest)} height={Math.max(2, y(median) - y(slowest))}>
              <title>{`${begin.toFixed(2)} s: ${r("latencyWords", { m: words(median), x: words(slowest) })}`}</title>
            </rect>
            <rect class="r-median" x={x(begin)} width={wide(begin, begin + shown.column * 0.9)} y={y(median) - 1} height="2" />
          </g>
        );
      })}
    </g>
  );
}
