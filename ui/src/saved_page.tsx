// A page that was saved: one story, or several with an overview, and no server.

import { Fill, seconds, Textures } from "./lanes";
import { useView } from "./later";
import { PodView } from "./pod";
import type { Saved } from "./saved";
import { t } from "./texts";
import type { Story } from "./types";

export function SavedPage({ saved, path }: { saved: Saved; path: string[] }) {
  const [first, uid, third, moment] = path;
  const Reports = useView(saved.reports ? "reports" : null);
  const only = saved.stories.length === 1 && !saved.reports ? "1" : first === "pod" ? uid : undefined;
  return (
    <>
      {saved.error && <p class="error" role="alert">{saved.error}</p>}
      {only ? <PodView key={only} uid={only} moment={third === "at" && moment ? Number(moment) : null} /> : Reports ? <Reports saved={saved} /> : <Together saved={saved} />}
    </>
  );
}

const length = (story: Story): number => Math.max(0, story.end, story.gone ?? 0);

/** All Pods on one true time axis, from the first DELETE on. */
function Together({ saved }: { saved: Saved }) {
  const zero = Math.min(...saved.stories.map((each) => each.zeroAt));
  const offset = (story: Story) => (story.zeroAt - zero) / 1000;
  const last = Math.max(0.001, ...saved.stories.map((each) => offset(each) + length(each)));
  return (
    <>
      <h1>{saved.title}</h1>
      {saved.stories.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={saved.caption}>
          <svg width="0" height="0" aria-hidden="true"><defs><Textures /></defs></svg>
          <table class="together">
            <caption>{saved.caption}</caption>
            <thead><tr>{[t("col.pod"), t("col.how"), t("scaleOf", { s: seconds(last) }), t("col.exits"), t("col.gone")].map((each) => <th key={each} scope="col">{each}</th>)}</tr></thead>
            <tbody>
              {saved.stories.map((story) => (
                <tr key={story.uid} class={`o-${story.ongoing ? "" : story.outcome}`}>
                  <th scope="row"><a href={`#/pod/${story.uid}`}>{story.namespace}/{story.name}</a></th>
                  <td>{story.words}</td>
                  <td><Mini story={story} offset={offset(story)} last={last} /></td>
                  <td>{saved.ends[`end/${story.uid}`]?.exits.map((each) => `${each.container} ${each.signal ?? each.code ?? "?"}`).join(", ")}</td>
                  <td>{story.gone === null ? "-" : `${seconds(story.gone)} s`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** The Pod, with hook and drain of the container that ended last, on one line. */
function Mini({ story, offset, last }: { story: Story; offset: number; last: number }) {
  const pc = (at: number) => `${((100 * at) / last).toFixed(2)}%`;
  const bars = (story.lanes.find((lane) => lane.kind === "container" && lane.name === story.budget?.container)?.bars ?? []).filter((bar) => bar.kind !== "running");
  const kills = story.lanes.flatMap((lane) => lane.marks).filter((mark) => mark.glyph === "kill");
  const bar = (kind: string, from: number, to: number) => <Fill kind={kind} x={pc(offset + from)} width={pc(Math.max(0, to - from))} y={3} height={12} />;
  return (
    <svg class="lanes mini" width="100%" height="18" role="img" aria-label={[...bars.map((each) => each.label), ...kills.map((each) => each.label)].join(", ") || story.words}>
      {bar("running", 0, length(story))}
      {bars.map((each) => bar(each.kind, each.start, each.end ?? length(story)))}
      {kills.map((each) => <svg key={each.n} x={pc(offset + each.at)} y="9" overflow="visible" class="mark m-kill"><path d="M-5 -5 L5 5 M5 -5 L-5 5" /></svg>)}
    </svg>
  );
}
