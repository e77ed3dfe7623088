// A level of the tour: a manifest to change, a run, and whether its goal is reached.

import { useEffect, useState } from "preact/hooks";
import { seconds } from "./lanes";
import { ask, calm, store, useStore, useTicks } from "./store";
import { language, pick } from "./texts";
import { Answers, Contents, Replay, Rule } from "./tour";
import { comparison, isGoing, LEVELS, w, type Check, type Level, type Recorded, type Run } from "./tour-data";
import { Versions } from "./tour-versions";

let known: Level[] | null = null;

/** The levels: those of the recording, or the server's. */
function useLevel(id: string, recorded: Recorded | undefined): [Level | null, string] {
  const [level, setLevel] = useState<Level | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const found = (all: Level[]) => setLevel(all.find((each) => each.id === id) ?? null);
    const all = recorded?.levels ?? known;
    if (all) found(all);
    else ask<{ levels: Level[] }>("/api/tour/levels").then(({ levels }) => found((known = levels)), (failure: Error) => setError(failure.message));
  }, [id]);
  return [level, error];
}

/** What a learner wrote, for as long as the page is open. */
const drafts = new Map<string, string>();

export function LevelView({ id, recorded }: { id: string; recorded?: Recorded | undefined }) {
  const [level, error] = useLevel(id, recorded);
  const ids = Object.keys(LEVELS);
  const number = ids.indexOf(id);
  const texts = LEVELS[id]!;
  const next = ids[number + 1];
  return (
    <div class="tour">
      <Contents current={`level-${id}`} />
      <article aria-labelledby="title">
        <p class="crumbs">{w("levels")} · {w("level", { n: number + 1, of: ids.length })}</p>
        <h1 id="title" tabIndex={-1}>{pick(texts.title)}</h1>
        <p class="lesson">{pick(texts.question)}</p>
        <p role="alert" class="error">{error}</p>
        {level && (recorded ? <Played level={level} recorded={recorded} /> : <Live level={level} />)}
        {level && <Rule rule={level.rule} {...(recorded ? { recorded } : {})} />}
        {level?.versions && <Versions found={comparison(level.versions)!} />}
        <nav class="player turn" aria-label={w("levels")}>
          {number > 0 && <a class="button" href={`#/tour/level-${ids[number - 1]}`}>← {w("before")}</a>}
          {next && <a class="button" href={`#/tour/level-${next}`}>{w("next")} →</a>}
        </nav>
      </article>
    </div>
  );
}

function Live({ level }: { level: Level }) {
  const { tour, story, cluster } = useStore();
  const [text, setText] = useState(drafts.get(level.id) ?? level.manifest);
  const [grace, setGrace] = useState("");
  const [error, setError] = useState("");
  const run = tour.get(`level-${level.id}`);
  const another = [...tour.values()].find((each) => isGoing(each) && each !== run);
  const going = isGoing(run);
  useEffect(() => store.follow(store.labels, run?.uid ?? ""), [run?.uid]);
  const mine = run?.uid && story?.uid === run.uid ? story : null;
  const recording = useRecording(level, run);
  useTicks(going && !!mine?.ongoing, calm.matches ? 2 : 12);
  const write = (manifest: string, seconds = grace) => (drafts.set(level.id, manifest), setText(manifest), setGrace(seconds));
  const post = (path: string, body: unknown) => void ask(path, body).then(() => setError(""), (failure: Error) => setError(failure.message));
  return (
    <>
      <section aria-labelledby="manifest-title">
        <h2 id="manifest-title">{w("manifest")}</h2>
        <Editor label={w("manifest")} text={text} write={write} />
        <label class="seconds">{w("levelGrace")} <input id="level-grace" inputMode="numeric" size={4} value={grace} onInput={(event) => setGrace(event.currentTarget.value.replace(/\D/g, ""))} /></label>
        <div class="player">
          <button id="start" class="main" disabled={!cluster.mayWrite || going || !!another || cluster.state !== "running"} onClick={() => post(`/api/tour/levels/${level.id}/run`, { manifest: text, grace })}>
            {run && !going ? w("again") : w("run")}
          </button>
          {going && <button id="stop" onClick={() => post("/api/tour/stop", {})}>{w("stop")}</button>}
          <button id="reset" class="link" onClick={() => write(level.manifest, "")}>{w("reset")}</button>
          <span role="status" id="run-state">{run ? w(run.state, { ns: run.namespace, pod: run.pod }) : another ? w("another") : w("namespaceHelp")}</span>
        </div>
        {!cluster.mayWrite && cluster.state === "running" && <p class="hint">{w("readOnly")}</p>}
        <p role="alert" class="error">{error || (run?.error ?? "")}</p>
      </section>
      <Help level={level} solve={() => write(level.solved, level.grace === null ? "" : String(level.grace))} />
      {run && <Answers run={run} />}
      <Replay key={recording ? "recorded" : run?.uid} story={recording ? recording.story![language] : mine?.zero ? mine : null} going={going} begin={recording ? 1 : 0}><Goal level={level} run={run} /></Replay>
    </>
  );
}

/** Without a cluster: as it is given, and solved. */
function Played({ level, recorded }: { level: Level; recorded: Recorded }) {
  const [shown, setShown] = useState<"given" | "solved">("given");
  const [begin, setBegin] = useState(0);
  const run = level.runs![shown];
  const play = (which: "given" | "solved") => (setShown(which), setBegin(begin + 1));
  return (
    <>
      <section aria-labelledby="manifest-title">
        <h2 id="manifest-title">{w("manifest")}</h2>
        <pre class="yaml" tabIndex={0}>{shown === "given" ? level.manifest : level.solved}</pre>
        <div class="player">
          <button id="start" class="main" onClick={() => play("given")}>{w("playGiven")}</button>
          <button id="solve" onClick={() => play("solved")}>{w("playSolved")}</button>
        </div>
        <p class="hint">{w("playedHelp", { v: recorded.kubernetesVersion })}</p>
      </section>
      <Answers run={run} />
      <Replay key={shown} story={run.story![language]} begin={begin}><Goal level={level} run={run} /></Replay>
    </>
  );
}

/** A text area, in which the tab key goes on to the next control: nobody is caught in it. */
function Editor({ label, text, write }: { label: string; text: string; write: (text: string) => void }) {
  return <textarea id="manifest" class="yaml" aria-label={label} spellcheck={false} autocomplete="off" rows={Math.min(24, text.split("\n").length + 1)} value={text} onInput={(event) => write(event.currentTarget.value)} />;
}

/** What a path leads to is a time, in seconds. */
const isTime = (path: string): boolean => /^(first|last)\.|(^gone|At|seconds)$/.test(path);

function shownValue(value: string | number | object | null, path: string): string {
  if (value === null) return w("notSeen");
  if (typeof value === "object") return w("wasSeen");
  return typeof value === "number" && isTime(path) ? `${Number.isInteger(value) ? value : seconds(value)} s` : String(value);
}

/** `last.Kind.fact=value` is shown as the record. */
const shownPath = (path: string): string => path.replace(/^(first|last)\.(\w+).*/, "$1 $2");

const wanted = ({ path, want }: { path: string; want: string | number | null }): string => shownPath(shownValue(want, path));

function Goal({ level, run }: { level: Level; run: Run | undefined }) {
  const checks = run?.goal ?? null;
  const reached = checks?.every((each) => each.held);
  const next = Object.keys(LEVELS)[Object.keys(LEVELS).indexOf(level.id) + 1];
  const rows: (Partial<Check> & { path: string; sign: string; want: string | number | null })[] = checks ?? level.goal.map(([path, sign, want]) => ({ path, sign, want }));
  return (
    <section aria-labelledby="goal">
      <h2 id="goal">{w("goal")}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={w("found")}>
        <table class="claims">
          <thead><tr><th scope="col">{w("wanted")}</th><th scope="col">{w("found")}</th><th scope="col">{w("goalIs")}</th></tr></thead>
          <tbody>
            {rows.map((each) => {
              const how = each.held === undefined ? "open" : each.held ? "yes" : "no";
              return (
                <tr key={each.path} class={`c-${how}`} data-goal={each.path}>
                  <td><code>{shownPath(each.path)} {each.sign} {wanted(each)}</code></td>
                  <td>{each.held === undefined ? "" : `${shownValue(each.left ?? null, each.path)}${each.want !== each.right ? ` ${each.sign} ${shownValue(each.right ?? null, each.path)}` : ""}`}</td>
                  <td><span aria-hidden="true">{how === "yes" ? "✓" : how === "no" ? "✗" : "…"}</span> {how !== "open" ? w(how === "yes" ? "claim.yes" : "goalNo") : !run && w("claim.open")}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="hint">{w("goalHelp")}</p>
      <p id="verdict" role="status" class={reached ? "good-text" : "hint"}>
        {checks && (reached ? <><b>✓ {w("reached")}</b> {pick(LEVELS[level.id]!.reached)}</> : w("missed"))}
      </p>
      {reached && next && <p><a class="button" href={`#/tour/level-${next}`}>{w("next")} →</a></p>}
      {isOutOfReach(level, run) && <p class="hint">{w("noMemory")}</p>}
    </section>
  );
}

/** What this machine cannot show; null where it can. */
function useRecording(level: Level, run: Run | undefined): Run | null {
  const [found, setFound] = useState<Run | null>(null);
  const out = isOutOfReach(level, run);
  useEffect(() => {
    if (out) ask<Run>(`/api/tour/levels/${level.id}/recorded`).then(setFound, () => undefined);
  }, [out]);
  return out ? found : null;
}

const isOutOfReach = (level: Level, run: Run | undefined): boolean => level.needs === "memory" && run?.state === "done" && !!run.goal && !memorySeen(run);

/** Whether something was ended for lack of memory, or the learner has prevented it. */
function memorySeen(run: Run): boolean {
  const reason = run.goal?.find((each) => each.path.endsWith(".reason"));
  return reason?.left === "OOMKilled" || drafts.has("memory");
}

function Help({ level, solve }: { level: Level; solve: () => void }) {
  return (
    <details class="help">
      <summary>{w("hints")}</summary>
      <ul>{LEVELS[level.id]!.hints.map((each) => <li key={each[0]}>{pick(each)}</li>)}</ul>
      <button id="solve" onClick={solve}>{w("solution")}</button>
    </details>
  );
}
