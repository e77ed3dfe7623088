// What a story comes to: the grace budget, how each container ended, its last words.

import { Fill } from "./lanes";
import { t } from "./texts";
import type { Story } from "./types";

export function Budget({ story }: { story: Story }) {
  const budget = story.budget;
  if (!budget) return null;
  let begin = 0;
  const parts = budget.parts.map((part) => ({ ...part, begin: (begin += part.share) - part.share }));
  const pc = (share: number) => `${(share * 100).toFixed(2)}%`;
  return (
    <section class="budget" aria-labelledby="budget">
      <h2 id="budget">{budget.title}<small>{budget.of}</small></h2>
      <svg class="lanes" width="100%" height="26" role="img" aria-label={`${budget.title}: ${parts.map((part) => `${part.words} ${part.time}`).join(", ")}`}>
        {parts.map((part) => <Fill key={part.kind} kind={part.kind} x={pc(part.begin)} width={pc(part.share)} y={0} height={26} />)}
        {budget.over > 0 && <line class="grace-over" x1={pc(1 - budget.over)} x2={pc(1 - budget.over)} y1="0" y2="26" />}
      </svg>
      <Keys of={parts.map((part) => [part.kind, <>{part.words} <b>{part.time}</b></>])} />
    </section>
  );
}

/** What colors and textures mean. */
export function Keys({ of }: { of: [string, preact.ComponentChildren][] }) {
  return (
    <ul class="keys-of-picture">
      {of.map(([kind, words]) => <li key={kind}><svg class="key" width="20" height="14" aria-hidden="true"><Fill kind={kind} x={1} width={18} y={1} height={12} /></svg> {words}</li>)}
    </ul>
  );
}

const BARS = ["running", "preStop", "waiting", "drain", "overrun", "ready", "serving", "terminating"] as const;

export function Legend({ story }: { story: Story }) {
  const drawn = new Set(story.lanes.flatMap((lane) => lane.bars.map((bar) => `${lane.kind === "endpoint" ? "endpoint" : ""}${bar.kind}`)));
  const shown = BARS.filter((kind) => drawn.has(kind) || drawn.has(`endpoint${kind}`));
  return <Keys of={shown.map((kind) => [kind, t(`bar.${kind}`)])} />;
}

export function Containers({ story }: { story: Story }) {
  if (!story.containers.length) return null;
  return (
    <section>
      <h2 id="ended">{t("endedTitle")}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="ended">
        <table>
          <thead><tr>{[t("container"), t("col.ended"), t("col.after"), t("col.hook"), "PID 1"].map((each) => <th key={each} scope="col">{each}</th>)}</tr></thead>
          <tbody>
            {story.containers.map((each) => (
              <tr key={each.name}><th scope="row">{each.name} {each.kind && <small>{each.kind}</small>}</th>{each.cells.map((cell, index) => <td key={index}>{cell}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function LastWords({ story }: { story: Story }) {
  return <>{story.lastWords.map((each) => <section key={each.title}><h2>{each.title}</h2><pre class="log" tabIndex={0} role="region" aria-label={each.title}>{each.lines.join("\n")}</pre></section>)}</>;
}
