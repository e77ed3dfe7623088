// A level of the tour: a manifest to change, a run, and whether its goal is reached.

import { useEffect, useState } from "preact/hooks";
import { seconds } from "./lanes";
import { ask, calm, store, useStore, useTicks } from "./store";
import { pick } from "./texts";
import { Answers, Contents, Failure, Replay, Rule } from "./tour";
import { comparison, isGoing, isReached, LEVELS, levelTitle, setReached, w, type Check, type Condition, type Level, type Recorded, type Run } from "./tour-data";
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

/** What a learner wrote and expects; `guess` is the number of a choice. */
interface Draft { manifest: string; grace: string; guess: number | null }

/** The draft of a level, which outlives the page. */
function useDraft({ id, manifest }: Level): [Draft, (change?: Partial<Draft>) => void] {
  const [key, given] = [`lastcall-level-${id}`, { manifest, grace: "", guess: null }];
  const [draft, setDraft] = useState<Draft>(() => ({ ...given, ...JSON.parse(localStorage.getItem(key) ?? "{}") }));
  const write = (change?: Partial<Draft>) => {
    const next = change ? { ...draft, ...change } : given;
    setDraft(next);
    if (change) localStorage.setItem(key, JSON.stringify(next));
    else localStorage.removeItem(key);
  };
  return [draft, write];
}

export function LevelView({ id, recorded }: { id: string; recorded?: Recorded | undefined }) {
  const [level, error] = useLevel(id, recorded);
  const number = LEVELS.indexOf(id);
  const next = LEVELS[number + 1];
  const [, again] = useState(0);
  return (
    <div class="tour">
      <Contents current={`level-${id}`} />
      <article aria-labelledby="title">
        <p class="crumbs">{w("levels")} · {w("level", { n: number + 1, of: LEVELS.length })}</p>
        <h1 id="title" tabIndex={-1}>{levelTitle(id)}</h1>
        {level && <p class="lesson">{pick(level.question)}</p>}
        <p role="alert" class="error">{error}</p>
        {level && (recorded ? <Played level={level} recorded={recorded} /> : <Live level={level} told={() => again((n) => n + 1)} />)}
        {level && <Rule rule={level.rule} says={pick(level.says)} recorded={recorded} />}
        {level?.versions && <Versions found={comparison(level.versions)!} />}
        <nav class="player turn" aria-label={w("levels")}>
          {number > 0 && <a class="button" href={`#/tour/level-${LEVELS[number - 1]}`}>← {w("before")}</a>}
          {next && <a class="button" href={`#/tour/level-${next}`}>{w("next")} →</a>}
        </nav>
      </article>
    </div>
  );
}

/** `told` is called when the level is reached for the first time. */
function Live({ level, told }: { level: Level; told: () => void }) {
  const { tour, story, cluster } = useStore();
  const [draft, write] = useDraft(level);
  const { manifest: text, grace, guess } = draft;
  const [error, setError] = useState("");
  const run = tour.get(`level-${level.id}`);
  const another = [...tour.values()].find((each) => isGoing(each) && each !== run);
  const going = isGoing(run);
  useEffect(() => store.follow(store.labels, run?.uid ?? ""), [run?.uid]);
  const mine = run?.uid && story?.uid === run.uid ? story : null;
  const recording = useRecording(level, run);
  // What is shown was made of what stands in the editor, or else it says so.
  const old = !!run && !going && (text !== run.manifest || (grace ? Number(grace) : null) !== run.grace);
  const reached = hasReached(level, run);
  useEffect(() => {
    if (reached && !isReached(level.id)) (setReached(level.id), told());
  }, [reached]);
  useTicks(going && !!mine?.ongoing, calm.matches ? 2 : 12);
  const post = (path: string, body: unknown) => void ask(path, body).then(() => setError(""), (failure: Error) => setError(failure.message));
  return (
    <>
      <section aria-labelledby="manifest-title">
        <h2 id="manifest-title">{w("manifest")}</h2>
        <Editor label={w("manifest")} text={text} write={(manifest) => write({ manifest })} />
        <label class="seconds">{w("levelGrace")} <input id="level-grace" inputMode="numeric" size={4} value={grace} onInput={(event) => write({ grace: event.currentTarget.value.replace(/\D/g, "") })} /></label>
        <Expect level={level} guess={guess} choose={(guess) => write({ guess })} run={old ? undefined : recording ? { ...recording, guess: run!.guess! } : run} />
        <div class="player">
          <button id="start" class="main" disabled={!cluster.mayWrite || going || !!another || cluster.state !== "running"} onClick={() => post(`/api/tour/levels/${level.id}/run`, draft)}>
            {run && !going ? w("again") : w("run")}
          </button>
          {going && <button id="stop" onClick={() => post("/api/tour/stop", {})}>{w("stop")}</button>}
          <button id="reset" class="link" onClick={() => write()}>{w("reset")}</button>
          <Status level={level} run={run} old={old}>{another ? w("another") : w("namespaceHelp")}</Status>
        </div>
        {!cluster.mayWrite && cluster.state === "running" && <p class="hint">{w("readOnly")}</p>}
        <Failure error={error} run={run} />
      </section>
      <Help level={level} solve={() => write({ manifest: level.solved, grace: String(level.grace ?? "") })} />
      <div class={old ? "old" : ""}>
        {old && <p class="tag">{w("old")}</p>}
        {run && <Answers run={run} />}
        <Replay key={recording ? "recorded" : run?.uid} story={recording ? pick(recording.story!) : mine?.zero ? mine : null} going={going} begin={recording ? 1 : 0}><Goal level={level} run={run} /></Replay>
      </div>
    </>
  );
}

/** Without a cluster: as it is given, and solved. */
function Played({ level, recorded }: { level: Level; recorded: Recorded }) {
  const [shown, setShown] = useState<"given" | "solved">("given");
  const [begin, setBegin] = useState(0);
  const [{ guess }, write] = useDraft(level);
  // What happens is not shown before the learner has asked for it.
  const run = begin ? level.runs![shown] : undefined;
  const play = (which: "given" | "solved") => (setShown(which), setBegin(begin + 1));
  return (
    <>
      <section aria-labelledby="manifest-title">
        <h2 id="manifest-title">{w("manifest")}</h2>
        <pre class="yaml" tabIndex={0}>{shown === "given" ? level.manifest : level.solved}</pre>
        <Expect level={level} guess={guess} choose={(guess) => write({ guess })} run={run && { ...run, guess }} />
        <div class="player">
          <button id="start" class="main" onClick={() => play("given")}>{w("playGiven")}</button>
          <button id="solve" onClick={() => play("solved")}>{w("playSolved")}</button>
        </div>
        <p class="hint"><Status level={level} run={run} /></p>
        <p class="hint">{w("playedHelp", { v: recorded.kubernetesVersion })}</p>
      </section>
      {run && <Answers run={run} />}
      <Replay key={shown} story={run ? pick(run.story!) : null} begin={begin}><Goal level={level} run={run} /></Replay>
    </>
  );
}

interface Told {
  level: Level;
  run: Run | undefined;
  /** The learner has changed what was run. */
  old?: boolean;
  /** What is said before the first run. */
  children?: preact.ComponentChildren;
}

/** How far the run is, and at last what decided. */
function Status({ level, run, old, children }: Told) {
  const reached = hasReached(level, run);
  const next = LEVELS[LEVELS.indexOf(level.id) + 1];
  const said = !run ? children : isOutOfReach(level, run) ? w("noMemory") : run.verdict ? `${reached ? "✓" : "✗"} ${w(reached ? "reached" : "missed")}: ${pick(run.verdict)}` : `${w(run.state, { ns: run.namespace, pod: run.pod })} ${pick(run.waits)}`;
  return (
    <>
      <span role="status" id="run-state" class={run?.verdict && !old ? (reached ? "good-text" : "bad-text") : ""}>{old ? `${w("old")}: ` : ""}{said}</span>
      {reached && !old && next && <a class="button" id="next" href={`#/tour/level-${next}`}>{w("next")} →</a>}
    </>
  );
}

interface Guess {
  level: Level;
  guess: number | null;
  choose: (guess: number) => void;
  run: Run | undefined;
}

/** What the learner expects, and whether it was so. Nothing waits for an answer. */
function Expect({ level, guess, choose, run }: Guess) {
  const { ask, choices } = level.expect;
  const right = run?.happened;
  const said = (n: number) => (choices[n] ? pick(choices[n]) : w("otherwise"));
  const what = right ? said(right.indexOf(true)) : "";
  const made = run?.guess ?? null;
  return (
    <fieldset class="expect">
      <legend>{w("expect")} {pick(ask)}</legend>
      {choices.map((each, n) => <label key={n}><input type="radio" name="expect" checked={guess === n} onChange={() => choose(n)} /> {pick(each)}</label>)}
      <p role="status" id="expected">{right && (made === null ? w("wasSo", { what }) : right[made] ? `✓ ${w("asExpected", { what })}` : `≠ ${w("notExpected", { guess: said(made), what })}`)}</p>
    </fieldset>
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

const wanted = ({ path, want }: Condition): string => shownPath(shownValue(want, path));

function Goal({ level, run }: { level: Level; run: Run | undefined }) {
  const checks = run?.goal ?? null;
  const rows: (Partial<Check> & Condition)[] = checks ?? level.goal;
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
                  <td>{pick(each.says)}<small><code>{shownPath(each.path)} {each.sign} {wanted(each)}</code></small></td>
                  <td>{each.held === undefined ? "" : `${shownValue(each.left ?? null, each.path)}${each.want !== each.right ? ` ${each.sign} ${shownValue(each.right ?? null, each.path)}` : ""}`}</td>
                  <td><span aria-hidden="true">{how === "yes" ? "✓" : how === "no" ? "✗" : "…"}</span> {how !== "open" ? w(how === "yes" ? "claim.yes" : "goalNo") : !run && w("claim.open")}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="hint">{w("goalHelp")}</p>
      {hasReached(level, run) && <p id="lesson" class="good-text">{pick(level.reached)}</p>}
      {run?.state === "done" && !level.runs && <p class="hint">{w("done", { ns: run.namespace })}</p>}
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

const isOutOfReach = (level: Level, run: Run | undefined): boolean => level.needs === "memory" && run?.state === "done" && !!run.goal && !memorySeen(level, run);

/** Whether something was ended for lack of memory, or the learner has prevented it. */
const memorySeen = (level: Level, run: Run): boolean => run.manifest !== level.manifest || run.goal!.some((each) => each.left === "OOMKilled");

const hasReached = (level: Level, run: Run | undefined): boolean => !!run?.goal?.every((each) => each.held) && !isOutOfReach(level, run);

function Help({ level, solve }: { level: Level; solve: () => void }) {
  return (
    <details class="help">
      <summary>{w("hints")}</summary>
      <ul>{level.hints.map((each) => <li key={each.en}>{pick(each)}</li>)}</ul>
      <button id="solve" onClick={solve}>{w("solution")}</button>
    </details>
  );
}
