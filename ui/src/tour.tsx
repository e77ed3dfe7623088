// The lesson: one step after the other, each run on the cluster behind the page, or played where there is none.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Command } from "./command";
import { beginning, Lanes, since } from "./lanes";
import { views } from "./later";
import { Player, usePlayer } from "./player";
import { Steps } from "./steps";
import { explained, sourceOf } from "./rules";
import { ask, calm, store, useStore, useTicks } from "./store";
import { pick, t } from "./texts";
import { LEVELS, STEPS, chapterName, claimSays, claimSeen, isGoing, isReached, lessonOf, levelTitle, saysOf, versionsOf, w, type Recorded, type Run, type TourStep } from "./tour-data";
import { LevelView } from "./level";
import { Versions } from "./tour-versions";
import type { Story } from "./types";

interface Props {
  id: string;
  recorded?: Recorded;
}

function Tour({ id, recorded }: Props) {
  const level = id.replace(/^level-/, "");
  if (level !== id || !id) return <LevelView key={level} id={LEVELS.includes(level) ? level : LEVELS[0]!} recorded={recorded} />;
  return <Lesson id={id} recorded={recorded} />;
}

function Lesson({ id, recorded }: Props) {
  const number = Math.max(0, STEPS.findIndex((each) => each.id === id));
  const step = STEPS[number]!;
  const go = (by: number) => {
    const next = STEPS[number + by];
    if (next) location.hash = `#/tour/${next.id}`;
  };
  // Before the step is seen: a key that follows at once belongs to it.
  useLayoutEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest("input,textarea,select,.scroll,.log")) return;
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by) (event.preventDefault(), go(by));
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [number]);
  const shown = useRef(number);
  useEffect(() => {
    // Whoever hears the page is told the new title.
    if (shown.current !== number) document.getElementById("title")?.focus();
    shown.current = number;
  }, [number]);
  return (
    <div class="tour">
      <Contents current={step.id} />
      <article aria-labelledby="title">
        <p class="crumbs">{chapterName(step.chapter)} · {w("count", { n: number + 1, of: STEPS.length })}</p>
        <h1 id="title" tabIndex={-1}>{saysOf(step).title}</h1>
        <p class="lesson">{saysOf(step).text}</p>
        <Rule rule={step.rule} recorded={recorded} />
        {recorded ? <Played key={step.run} step={step} run={recorded.runs[step.run]!} version={recorded.kubernetesVersion} /> : <Live key={step.run} step={step} />}
        {versionsOf(step) && <Versions found={versionsOf(step)!} />}
        <nav class="player turn" aria-label={w("turn")}>
          <button id="before" disabled={number === 0} onClick={() => go(-1)}>← {w("before")}</button>
          <button id="after" disabled={number === STEPS.length - 1} onClick={() => go(1)}>{w("after")} →</button>
        </nav>
        <p class="hint keys">{w("keys")}</p>
      </article>
    </div>
  );
}

export function Contents({ current }: { current: string }) {
  const chapters = [...new Set(STEPS.map((each) => each.chapter))];
  return (
    <nav class="contents" aria-label={t("tour")}>
      <details open={innerWidth > 800}>
        <summary>{w("contents")}</summary>
        <section aria-label={w("levels")}>
          <h2>{w("levels")}</h2>
          <ol>
            {LEVELS.map((id) => (
              <li key={id}><a href={`#/tour/level-${id}`} aria-current={current === `level-${id}` ? "step" : undefined}>{isReached(id) && <span role="img" aria-label={w("reached")}>✓ </span>}{levelTitle(id)}</a></li>
            ))}
          </ol>
        </section>
        {chapters.map((chapter) => (
          <section key={chapter} aria-label={chapterName(chapter)}>
            <h2>{chapterName(chapter)}</h2>
            <ol>
              {STEPS.filter((each) => each.chapter === chapter).map((each) => (
                <li key={each.id} value={STEPS.indexOf(each) + 1}>
                  <a href={`#/tour/${each.id}`} aria-current={each.id === current ? "step" : undefined}>{saysOf(each).title}</a>
                </li>
              ))}
            </ol>
          </section>
        ))}
      </details>
    </nav>
  );
}

/** `says` is in place of what the rule says everywhere. */
export function Rule({ rule, says = explained(rule), recorded }: { rule: string; says?: string; recorded?: Recorded | undefined }) {
  const source = sourceOf(rule, recorded?.kubernetesVersion ?? store.cluster.kubernetesVersion ?? "");
  return (
    <p class="rule">
      <b>{t("rule")}:</b> {says} <code>{rule}</code>{" "}
      {source && <a href={source} target="_blank" rel="noreferrer noopener">{t("source")}</a>}
    </p>
  );
}

/** With a cluster: the run is everybody's, and every browser sees it. */
function Live({ step }: { step: TourStep }) {
  const { tour, story, cluster } = useStore();
  const [error, setError] = useState("");
  const run = tour.get(step.run);
  const another = [...tour.values()].find((each) => isGoing(each) && each.experiment !== step.run);
  useEffect(() => store.follow(store.labels, run?.uid ?? ""), [run?.uid]);
  const mine = run?.uid && story?.uid === run.uid ? story : null;
  const going = isGoing(run);
  const post = (path: string) => ask(path, {}).then(() => setError(""), (failure: Error) => setError(failure.message));
  useTicks(going && !!mine?.ongoing, calm.matches ? 2 : 12);
  return (
    <section aria-labelledby="run">
      <h2 id="run">{w("onCluster")}</h2>
      {!cluster.mayWrite && cluster.state === "running" && <p class="hint">{w("readOnly")}</p>}
      <div class="player">
        <button id="start" class="main" disabled={!cluster.mayWrite || going || !!another || cluster.state !== "running"} onClick={() => void post(`/api/tour/${step.run}/run`)}>
          {run && !going ? w("again") : w("run")}
        </button>
        {going && <button id="stop" onClick={() => void post("/api/tour/stop")}>{w("stop")}</button>}
        <span role="status" id="run-state">{run ? `${w(run.state, { ns: run.namespace, pod: run.pod })} ${pick(run.waits)}` : another ? w("another") : w("notYet")}</span>
      </div>
      <Failure error={error} run={run} />
      {run && <Answers run={run} />}
      <Claims step={step} run={run} />
      {mine && mine.zero && <Replay key={run?.uid} story={mine} going={going} begin={0} />}
    </section>
  );
}

/** Without a cluster: what the virtual one did. */
function Played({ step, run, version }: { step: TourStep; run: Run; version: string }) {
  const [begin, setBegin] = useState(0);
  return (
    <section aria-labelledby="run">
      <h2 id="run">{w("played")}</h2>
      <p class="hint">{w("playedHelp", { v: version })}</p>
      <div class="player"><button id="start" class="main" onClick={() => setBegin(begin + 1)}>{w("playRun")}</button></div>
      <Answers run={run} />
      <Claims step={step} run={run} />
      {run.story && <Replay story={pick(run.story)} begin={begin} />}
    </section>
  );
}

interface Shown {
  story: Story | null;
  /** It ends now: there is nothing to play yet. */
  going?: boolean;
  begin: number;
  children?: preact.ComponentChildren;
}

/** Its end while it goes on, and then to be played again. */
export function Replay({ story, going = false, begin, children }: Shown) {
  const player = usePlayer(story ? beginning(story) : 0, story ? Math.max(story.end, story.gone ?? 0) : 0, begin);
  return <>{story && !going && <Player player={player} />}<Picture story={story} at={going ? store.storyNow() : player.at} live={going}>{children}</Picture></>;
}

/** The lanes, and below what is given the steps, which are many. */
export function Picture({ story, at, live, children }: { story: Story | null; at: number; live: boolean; children?: preact.ComponentChildren }) {
  const [chosen, choose] = useState<number | null>(null);
  return (
    <>
      {story && <p class="hint">{since(story)} {t("pictureHelp")}</p>}
      {story && <Lanes story={story} at={at} live={live} chosen={chosen} choose={choose} />}
      {children}
      {story && <Steps story={story} at={at} chosen={chosen} choose={choose} />}
    </>
  );
}

/** What to change; as it was said in the cluster, to be unfolded. */
export function Failure({ error, run }: { error: string; run: Run | undefined }) {
  return (
    <>
      <p role="alert" class="error">{error || (run ? pick(run.error) : "")}</p>
      {!error && run?.words && <details class="help"><summary>{w("original")}</summary><pre class="log">{run.words}</pre></details>}
    </>
  );
}

export function Answers({ run }: { run: Run }) {
  if (!run.answers.length) return null;
  return (
    <ol class="answers" aria-label={w("answers")}>
      {run.answers.map((each, index) => (
        <li key={index}>
          <Command text={each.command} />
          <span class={each.code < 300 ? "good-text" : "bad-text"}>{each.code < 300 ? "✓" : "✗"} HTTP {each.code} {each.message}</span>
        </li>
      ))}
    </ol>
  );
}

const SIGNS = { yes: "✓", no: "≠", open: "…", unknown: "?" };

function Claims({ step, run }: { step: TourStep; run: Run | undefined }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={w("claims")}>
      <table class="claims">
        <thead><tr><th scope="col">{w("says")}</th><th scope="col">{w("seen")}</th><th scope="col">{w("verdict")}</th></tr></thead>
        <tbody>
          {step.claims.map((claim) => {
            const found = run?.claims[claim];
            const how = !found ? "open" : found.held === null ? "unknown" : found.held ? "yes" : "no";
            return (
              <tr key={claim} class={`c-${how}`} data-claim={claim}>
                <td>{claimSays(claim)}</td>
                <td>{found && found.held !== null ? claimSeen(claim, found.values) : ""}</td>
                <td><span aria-hidden="true">{SIGNS[how]}</span> {w(`claim.${how}`)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Where the tour explains a rule. */
function LessonLink({ rule }: { rule: string }) {
  const lesson = lessonOf(rule);
  return lesson ? <dd><a href={`#/tour/${lesson.id}`}>{w("see", { title: saysOf(lesson).title })}</a></dd> : null;
}

Object.assign(views, { tour: Tour, lesson: LessonLink });
