// A rollout: its requests live, what would be lost were it set otherwise, and running it again.

import { useEffect, useRef, useState } from "preact/hooks";
import { Command } from "./command";
import { seconds } from "./lanes";
import { views } from "./later";
import { Causes, Found, Reports } from "./rollout_report";
import { RolloutPicture } from "./rollout_picture";
import { SearchView } from "./rollout_search";
import { r, verdict } from "./rollout_texts";
import type { Forecast, Rollout, Values } from "./rollout_types";
import { Prose, Said } from "./said";
import { ask, store, useStore } from "./store";

export function RolloutView() {
  const { rollout, ended } = useStore();
  if (!rollout) return <><h1>{r("title")}</h1><p class="hint">{r("none")}</p></>;
  const total = Object.values(rollout.totals).reduce((a, b) => a + b, 0);
  const lost = Object.values(rollout.losses).reduce((a, b) => a + b, 0);
  return (
    <>
      <h1>{r("title")}: {rollout.what}</h1>
      <p class="hint">{r("to", { s: rollout.service, f: rollout.source, d: rollout.disrupt })}</p>
      <p class="state">
        <b>{whichRun(rollout)}</b>
        {rollout.verdict && <Found of={rollout.verdict} />}{" "}
        {!rollout.idle && (rollout.phase || (!rollout.verdict && r("running")))}
      </p>
      <Said unseen text={`${whichRun(rollout)}${rollout.verdict ? verdict(rollout.verdict) : rollout.phase || r("running")}. ${r("lostOf", { l: lost, n: total })}`} />
      {rollout.error && <p class="error" role="alert">{rollout.error}</p>}
      {rollout.sentence && <p class="verdict"><Prose text={rollout.sentence} /></p>}
      <section aria-labelledby="rollout-picture">
        <h2 id="rollout-picture">{r("picture")}</h2>
        <p class="hint">{r("pictureHelp")}</p>
        <p id="lost" class={lost ? "error" : ""}>
          {rollout.began && r("lostOf", { l: lost, n: total })}
          {rollout.controlLost > 0 && ` (${r("controlLost", { l: rollout.controlLost })})`}
        </p>
        <RolloutPicture shown={rollout} label={`${r("picture")}: ${r("lostOf", { l: lost, n: total })}`} />
      </section>
      {rollout.causes.length > 0 && <Causes shown={rollout} />}
      {rollout.patch && <Patch rollout={rollout} />}
      {rollout.search && <SearchView search={rollout.search} />}
      {!ended && (rollout.theirs ? <There rollout={rollout} theirs={rollout.theirs} /> : <WhatIf key={rollout.number} rollout={rollout} />)}
      {rollout.runs.length > 1 && <Runs rollout={rollout} />}
    </>
  );
}

function whichRun(rollout: Rollout): string {
  const { number: n, of, why } = rollout;
  if (n === 1 && of === 1) return "";
  return `${n <= of ? r("runOf", { n, of }) : r("run", { n })}${why ? ` (${r(`why.${why}`)})` : ""}: `;
}

/** On somebody's cluster nothing is changed from here. */
function There({ rollout, theirs }: { rollout: Rollout; theirs: { context: string; here: string } }) {
  return (
    <section class="what-if" aria-labelledby="there">
      <h2 id="there">{r("there", { c: theirs.context })}</h2>
      <p class="hint">{r("thereHelp")}</p>
      <Command text={theirs.here} />
      <RunAgain id="again" body={{}} label={r("thereAgain")} idle={rollout.idle} />
    </section>
  );
}

function Patch({ rollout }: { rollout: Rollout }) {
  return (
    <section>
      <h2 id="patch">{r("patch")}</h2>
      <pre class="log" tabIndex={0} role="region" aria-labelledby="patch">{rollout.patch}</pre>
      <Command text={rollout.command} />
      {!store.ended && !rollout.theirs && <RunAgain id="apply" body={{ advice: true }} label={r("apply")} idle={rollout.idle} />}
    </section>
  );
}

function RunAgain({ id, body, label, idle }: { id: string; body: unknown; label: string; idle: boolean }) {
  const [said, setSaid] = useState("");
  const [failed, setFailed] = useState("");
  if (store.cluster.readOnly) return null;
  const run = () => void ask("/api/rollout/again", body).then(() => (setSaid(r("asked")), setFailed("")), (error: Error) => (setFailed(error.message), setSaid("")));
  return (
    <p>
      <button id={id} disabled={!idle} onClick={run}>{label}</button> <span role="status">{said}</span> <span role="alert" class="error">{failed}</span>
    </p>
  );
}

const HOPS: Record<string, string[]> = { balancer: ["controller", "balancer"] };

function WhatIf({ rollout }: { rollout: Rollout }) {
  const [values, setValues] = useState<Values>(rollout.values);
  const [failed, setFailed] = useState("");
  const [asked, setAsked] = useState(0);
  const changed = useRef(false);
  useEffect(() => {
    if (!changed.current || !rollout.canForecast) return;
    const timer = setTimeout(() => {
      ask<{ number: number }>("/api/rollout/forecast", values).then((got) => (setAsked(got.number), setFailed("")), (error: Error) => setFailed(error.message));
    }, 60);
    return () => clearTimeout(timer);
  }, [values, rollout.canForecast]);
  const set = (more: Partial<Values>) => {
    changed.current = true;
    setValues((before) => ({ ...before, ...more }));
  };
  const forecast = rollout.forecast && rollout.forecast.number === asked ? rollout.forecast : null;
  const hops = HOPS[rollout.source] ?? ["controller", "watch", "kernel"];
  return (
    <section class="what-if" aria-labelledby="what-if">
      <h2 id="what-if">{r("whatIf")}</h2>
      <p class="hint">{r("whatIfHelp")}</p>
      {!rollout.canForecast && <p class="hint">{r("notYet")}</p>}
      <div class="sliders">
        {values.sleep !== null ? (
          <Slider id="sleep" label={r("sleep")} value={values.sleep} least={0} most={Math.max(30, rollout.values.sleep ?? 0)} step={1} set={(sleep) => set({ sleep })} />
        ) : (
          <p class="hint">{r("noSleep")}</p>
        )}
        <Slider id="grace-period" label={r("grace")} value={values.grace} least={1} most={Math.max(60, rollout.values.grace)} step={1} set={(grace) => set({ grace })} />
        {values.maxUnavailable !== null && rollout.disrupt === "rollout" && (
          <Slider id="max-unavailable" label={r("maxUnavailable")} value={values.maxUnavailable} least={rollout.leastUnavailable} most={Math.max(rollout.replicas, values.maxUnavailable)} step={1} set={(maxUnavailable) => set({ maxUnavailable })} />
        )}
        {hops.map((hop) => (
          <Slider key={hop} id={`hop-${hop}`} label={r(`hop.${hop}` as "hop.watch")} value={values.hops[hop] ?? 0} least={0} most={Math.max(10, (rollout.values.hops[hop] ?? 0) * 2)} step={0.1}
            safe={forecast && forecast.hop === hop ? safeUpTo(forecast) : undefined}
            set={(delay) => set({ hops: { ...values.hops, [hop]: delay } })} />
        ))}
      </div>
      <p><button class="link" onClick={() => set(rollout.values)}>{r("reset")}</button></p>
      <div id="forecast" role="status">{rollout.canForecast && changed.current && <Foretold forecast={forecast} />}</div>
      <p role="alert" class="error">{failed || forecast?.error}</p>
      {forecast?.picture && (
        <>
          <h3>{r("predictedPicture")}</h3>
          <RolloutPicture shown={forecast.picture} label={r("predictedPicture")} predicted />
        </>
      )}
      {forecast?.patchText && (
        <>
          <h3 id="patch-of">{r("patchOf")}</h3>
          <pre class="log" tabIndex={0} role="region" aria-labelledby="patch-of">{forecast.patchText}</pre>
        </>
      )}
      <RunAgain id="again" body={values} label={r("again")} idle={rollout.idle} />
    </section>
  );
}

/** The least edge of the kinds that have one, -1 where none has. */
function safeUpTo(forecast: Forecast): number | undefined {
  if (!forecast.edges) return undefined;
  const edges = Object.values(forecast.edges).filter((edge) => edge !== null);
  return edges.length ? Math.min(...edges) : -1;
}

function Foretold({ forecast }: { forecast: Forecast | null }) {
  if (!forecast?.edges) return <p>{forecast?.error ? "" : r("predicting")}</p>;
  const how = r(`by.${forecast.how ?? "rule"}`);
  return (
    <>
      <h3>{r("foretold")}{!forecast.done && <small> {r("predicting")}</small>}</h3>
      <ul>
        {Object.entries(forecast.edges).map(([kind, edge]) => {
          const [l, n] = [forecast.picture?.losses[kind] ?? 0, forecast.picture?.totals[kind] ?? 0];
          return (
            <li key={kind} data-kind={kind} class={l ? "error" : ""}>
              {!forecast.picture && <b>{kind}: </b>}{forecast.picture && r(l ? "predicted" : "predictedNone", { k: kind, l, n })} {edge === null ? r("noEdge", { h: how }) : r("edge", { e: seconds(edge), h: how })}
            </li>
          );
        })}
      </ul>
    </>
  );
}

interface SliderProps {
  id: string;
  label: string;
  value: number;
  least: number;
  most: number;
  step: number;
  safe?: number | undefined;
  set: (value: number) => void;
}

function Slider({ id, label, value, least, most, step, safe, set }: SliderProps) {
  return (
    <div class="slider">
      <label for={id}>{label} <output>{value}</output></label>
      <input id={id} type="range" min={least} max={most} step={step} value={value} onInput={(event) => set(Number(event.currentTarget.value))} />
      <svg class="safe" height="6" width="100%" aria-hidden="true">
        {safe !== undefined && <rect class="unsafe-part" x="0" y="0" width="100%" height="6" />}
        {safe !== undefined && <rect class="texture" fill="url(#t-over)" x="0" y="0" width="100%" height="6" />}
        {safe !== undefined && safe >= 0 && <rect class="safe-part" x="0" y="0" width={`${Math.min(100, ((safe - least) / (most - least)) * 100)}%`} height="6" />}
      </svg>
    </div>
  );
}

function Runs({ rollout }: { rollout: Rollout }) {
  return (
    <section>
      <h2 id="runs">{r("runs")}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="runs">
        <table>
          <thead><tr>{(["col.run", "col.asked", "col.delay", "col.verdict", "col.count"] as const).map((key) => <th key={key} scope="col">{r(key)}</th>)}</tr></thead>
          <tbody>
            {rollout.runs.map((each, index) => (
              <tr key={index}><td>{index + 1}</td><td>{r(each.why ? `why.${each.why}` : "why.asked")}</td><td>{each.propagation}</td><td>{verdict(each.verdict)}</td><td>{each.lost} / {each.total}</td></tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

Object.assign(views, { rollout: RolloutView, reports: Reports });
