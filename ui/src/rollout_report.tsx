// A rollout that was saved: each experiment with its picture, its tables, and the stories of the old Pods.

import type { Verdict } from "./published";
import { RolloutPicture } from "./rollout_picture";
import { r, verdict } from "./rollout_texts";
import type { Picture, Report } from "./rollout_types";
import { Prose } from "./said";
import type { Saved } from "./saved";

export const Found = ({ of }: { of: Verdict }) => <span class={`tag ${of === "nothing lost" ? "good" : "bad"}`}>{verdict(of)}</span>;

export function Reports({ saved }: { saved: Saved }) {
  return (
    <>
      {saved.limits!.map((line) => <p key={line} class="verdict">{line}</p>)}
      {saved.reports!.map((report, index) => <Experiment key={index} report={report} first={index === 0} />)}
    </>
  );
}

function Experiment({ report, first }: { report: Report; first: boolean }) {
  const lost = Object.values(report.losses).reduce((a, b) => a + b, 0);
  const total = Object.values(report.totals).reduce((a, b) => a + b, 0);
  const label = `${r("picture")}: ${r("lostOf", { l: lost, n: total })}`;
  return (
    <article class="report">
      <h1>{report.what} {report.which && <small>{report.which}</small>}<Found of={report.verdict} /></h1>
      <p class="verdict"><Prose text={report.sentence} /></p>
      <p class="hint">{report.about}</p>
      {report.notes.map((note) => <p key={note} class="hint"><Prose text={note} /></p>)}
      <h2>{r("picture")}</h2>
      <p class="hint">{r("pictureHelp")}</p>
      <p class={lost ? "error" : ""}>{r("lostOf", { l: lost, n: total })}</p>
      <RolloutPicture shown={report} label={label} textures={first} />
      {report.patch && <><h2>{r("patch")}</h2><pre class="log" tabIndex={0} role="region" aria-label={`${r("patch")} ${report.which}`}>{report.patch}</pre></>}
      {report.causes.length > 0 && <Causes shown={report} of={report.which} />}
      {report.tables.map((table) => (
        <section key={table.caption}>
          <h2>{table.caption}</h2>
          <Table name={`${table.caption} ${report.which}`} head={table.head} rows={table.rows} />
        </section>
      ))}
      {report.ends.length > 0 && (
        <section>
          <h2>{r("ends")}</h2>
          <ul>{report.ends.map((each) => <li key={each.uid}><a href={`#/pod/${each.uid}`}>{each.words}</a></li>)}</ul>
        </section>
      )}
    </article>
  );
}

function Table({ name, head, rows }: { name: string; head: string[]; rows: preact.ComponentChildren[][] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      <table>
        <thead><tr>{head.map((each) => <th key={each} scope="col">{each}</th>)}</tr></thead>
        <tbody>{rows.map((row, index) => <tr key={index}>{row.map((cell, at) => <td key={at}>{cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

export function Causes({ shown, of = "" }: { shown: Picture; of?: string }) {
  return (
    <section>
      <h2 id={of ? undefined : "causes"}>{r("causes")}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${r("causes")} ${of}`}>
        <table>
          <thead><tr>{(["col.count", "col.atMost", "col.kind", "col.how", "col.why"] as const).map((key) => <th key={key} scope="col">{r(key)}</th>)}</tr></thead>
          <tbody>
            {shown.causes.map((each) => (
              <tr key={each.kind + each.how + each.cause} data-cause={each.cause}><td>{each.count}</td><td>{each.atMost}</td><td>{each.kind}</td><td>{each.how}<br /><small>{each.means}</small></td><td>{each.why}</td></tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
