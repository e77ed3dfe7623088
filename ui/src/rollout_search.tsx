// The search of --find-safe: runs on both sides of an edge that was predicted.

import { seconds } from "./lanes";
import { r } from "./rollout_texts";
import type { Edge, Search } from "./rollout_types";

const STEP = 14;

export function SearchView({ search }: { search: Search }) {
  const sleep = search.preStopSleep;
  return (
    <section aria-labelledby="search">
      <h2 id="search">{r("search")}</h2>
      <p class={search.done ? "verdict" : "hint"} role="status">{search.done ? search.sentence : r("searching")}</p>
      {search.lag && <EdgeView id="edge-lag" edge={search.lag} label={r("edge.lag")} />}
      {sleep && <EdgeView id="edge-sleep" edge={sleep} label={r("edge.sleep", { d: seconds(sleep.lag) })} />}
      {sleep && search.done && <p class="verdict">{sleep.sentence}</p>}
    </section>
  );
}

/** Each run at its value: a circle where nothing was lost, a triangle where something was. */
function EdgeView({ id, edge, label }: { id: string; edge: Edge; label: string }) {
  const values = [...edge.trials.map((each) => each.seconds), edge.predicted.seconds ?? 0];
  const most = Math.max(1, Math.ceil(Math.max(...values) * 1.15));
  const x = (value: number) => `${(2 + (value / most) * 94).toFixed(2)}%`;
  const above = new Map<number, number>();
  const placed = edge.trials.map((each) => {
    const row = above.get(each.seconds) ?? 0;
    above.set(each.seconds, row + 1);
    return { ...each, row };
  });
  const base = 24 + Math.max(1, ...above.values()) * STEP;
  const foretold = edge.predicted.seconds;
  return (
    <>
      <h3 id={id}>{label}</h3>
      <p class="hint">{foretold === null ? r("edge.nonePredicted") : r("edge.predicted", { s: seconds(foretold) })} · ○ {r("edge.safe")} · ▲ {r("edge.lossy")}</p>
      <svg class="edge" width="100%" height={base + 22} aria-hidden="true">
        <line class="axis" x1={x(0)} x2={x(most)} y1={base} y2={base} />
        {[...new Set([0, ...above.keys(), most])].sort((a, b) => a - b).filter((value, index, all) => !index || value - all[index - 1]! > most / 14).map((value) => (
          <g key={value}><line class="axis" x1={x(value)} x2={x(value)} y1={base} y2={base + 4} /><text x={x(value)} y={base + 17} text-anchor="middle">{value}</text></g>
        ))}
        {foretold !== null && <line class="foretold-edge" x1={x(foretold)} x2={x(foretold)} y1="6" y2={base} />}
        {placed.map((each, index) => (
          <svg key={index} x={x(each.seconds)} y={base - 9 - each.row * STEP} overflow="visible">
            {each.lost ? <path class="lossy-run" d="M0 -5 L5 4 L-5 4 Z" /> : <circle class="safe-run" r="4" />}
          </svg>
        ))}
      </svg>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby={id}>
        <table class="trials">
          <thead><tr><th scope="col">{r("col.value")}</th><th scope="col">{r("col.found")}</th></tr></thead>
          <tbody>{edge.trials.map((each, index) => <tr key={index}><td>{seconds(each.seconds)}</td><td>{each.lost ? "▲" : "○"} {each.lost} / {each.total}</td></tr>)}</tbody>
        </table>
      </div>
      {edge.disagreements.map((each) => <p key={each} class="hint">{each}</p>)}
    </>
  );
}
