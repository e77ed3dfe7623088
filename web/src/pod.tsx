// One Pod: its end as it happens, what comes next, and what one may do.

import { useEffect, useState } from "preact/hooks";
import { Act } from "./act";
import { Facts } from "./facts";
import { beginning, Lanes, nextWords, seconds, since } from "./lanes";
import { useView } from "./later";
import { ask, calm, inLanguage, store, useStore, useTicks } from "./store";
import { language, t } from "./texts";
import type { Next, Step, Story } from "./types";

export function PodView({ uid, moment }: { uid: string; moment: number | null }) {
  const { pods, story, ends } = useStore();
  const [at, setAt] = useState<number | null>(moment);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [chosen, setChosen] = useState<number | null>(null);
  const [grace, setGrace] = useState("");
  useEffect(() => setGrace(""), [uid]);
  useEffect(() => store.follow(store.labels, uid), [uid]);
  useEffect(() => setAt(moment), [moment]);
  const mine = story?.uid === uid ? story : null;
  const live = at === null;
  useTicks(live && !!mine?.ongoing, calm.matches ? 2 : 12);
  useEffect(() => {
    if (!playing) return;
    const pace = calm.matches ? 500 : 40;
    const timer = setInterval(() => {
      setAt((now) => {
        if (now === null) return now; // live again, and the timer is not yet gone
        const then = now + (pace / 1000) * speed;
        if (then < store.storyNow()) return then;
        setPlaying(false);
        return store.story?.ongoing ? null : store.storyNow();
      });
    }, pace);
    return () => clearInterval(timer);
  }, [playing, speed]);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key !== " " || (event.target as HTMLElement).closest("input,button,select,textarea,a,summary")) return;
      event.preventDefault();
      setAt((now) => (now === null ? store.storyNow() : null));
      setPlaying(false);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);

  const pod = pods.get(uid);
  const end = ends.get(uid);
  const who = pod ?? mine ?? end;
  const shown = at ?? store.storyNow();
  return (
    <>
      <p class="crumbs"><a href="#/">{t("back")}</a></p>
      <h1>{who ? `${who.namespace}/${who.name}` : uid}</h1>
      <p class="state" aria-live="polite">
        {mine?.words}{mine?.why && ` · ${mine.why}`} {!pod && who ? <span class="tag">{t("gone")}</span> : ""}
        {pod?.deletion && (pod.stage === "held" ? <span class="tag">{t("stage.held")}</span> : <Grace at={pod.deletion.at} />)}
      </p>
      {!mine && <p class="hint">{t("waiting")}</p>}
      {mine && (
        <section aria-labelledby="picture">
          <h2 id="picture">{t("picture")}</h2>
          <p class="hint">{since(mine)} {t("pictureHelp")}</p>
          <div class="player">
            <button id="pause" aria-pressed={!live} onClick={() => (setPlaying(false), setAt(live ? shown : null))}>{live ? t("pause") : t("live")}</button>
            <button id="play" onClick={() => (setAt(live || shown >= store.storyNow() ? beginning(mine) : shown), setPlaying(true))}>{t("play")}</button>
            <label>{t("speed")}
              <select id="speed" value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
                {[2, 1, 0.5, 0.2, 0.05].map((each) => <option key={each} value={each}>{each} ×</option>)}
              </select>
            </label>
            <label class="scrub">{t("moment")}
              <input id="scrub" type="range" min={beginning(mine)} max={store.storyNow()} step="any" value={shown}
                aria-valuetext={`${seconds(shown)} s`}
                onInput={(event) => (setPlaying(false), setAt(Number(event.currentTarget.value)))} />
            </label>
            <output id="clock">{seconds(shown)} s</output>
            <a href={`#/pod/${uid}/at/${shown.toFixed(3)}`}>{t("link")}</a>
            {!store.ended && <a href={inLanguage(`/api/pods/${uid}/page`)} download>{t("export")}</a>}
          </div>
          <Lanes story={mine} at={shown} live={live && mine.ongoing && !store.ended} chosen={chosen} choose={setChosen} />
        </section>
      )}
      {mine && mine.zero && (mine.ongoing || pod?.deletion) && <Coming next={mine.next} title={t("next")} now={store.storyNow()} />}
      {mine && pod && !store.ended && !pod.deletion && <WhatIf uid={uid} grace={grace} />}
      {pod && !store.ended && store.cluster.mayWrite && <Act pod={pod} grace={grace} setGrace={setGrace} />}
      {mine && mine.findings.length > 0 && (
        <section aria-labelledby="findings">
          <h2 id="findings">{t("findings")}</h2>
          <ul class="findings">
            {distinct(mine.findings).map((each) => <li key={each.id + each.text} class={each.severity}><b>{t(`severity.${each.severity}` as "severity.info")}:</b> {each.text} {each.advice && <span class="advice">→ {each.advice}</span>}{each.times > 1 && ` (×${each.times})`}</li>)}
          </ul>
        </section>
      )}
      {mine && !mine.ongoing && mine.notKnown.length > 0 && (
        <section aria-labelledby="not-known">
          <h2 id="not-known">{t("notKnown")}</h2>
          <ul class="findings">{mine.notKnown.map((each) => <li key={each}>{each}</li>)}</ul>
        </section>
      )}
      {mine && <Steps story={mine} at={shown} chosen={chosen} choose={setChosen} />}
      {mine && mine.output.length > 0 && (
        <section aria-labelledby="output">
          <h2 id="output">{t("outputTitle")}</h2>
          <pre class="log" tabIndex={0} role="log" aria-labelledby="output">
            {mine.output.filter((line) => line.at <= shown).map((line) => `${seconds(line.at).padStart(9)} s  ${line.container}  ${line.text}\n`).join("")}
          </pre>
        </section>
      )}
      {pod && !store.ended && <Facts pod={pod} />}
    </>
  );
}

/** Several containers may have the same to say. */
function distinct(findings: Story["findings"]): (Story["findings"][number] & { times: number })[] {
  const found = new Map<string, Story["findings"][number] & { times: number }>();
  for (const each of findings) {
    const key = `${each.id} ${each.severity} ${each.text} ${each.advice}`;
    found.set(key, { ...each, times: (found.get(key)?.times ?? 0) + 1 });
  }
  return [...found.values()];
}

function Grace({ at }: { at: string }) {
  useTicks(true, 2);
  const left = (Date.parse(at) - store.now()) / 1000;
  return <span class="tag">{left > 0 ? t("left", { s: Math.ceil(left) }) : t("graceOver")}</span>;
}

function Coming({ next, title, now = 0 }: { next: Next[]; title: string; now?: number }) {
  return (
    <section class="coming">
      <h2>{title}</h2>
      {!next.length && <p>{t("nothingNext")}</p>}
      <ol>{next.map((each) => <li key={each.what + each.container} class={`p-${each.what}`}>{nextWords(each, now)}</li>)}</ol>
    </section>
  );
}

/** With the grace period that is written below, or the Pod's own. */
function WhatIf({ uid, grace }: { uid: string; grace: string }) {
  const [next, setNext] = useState<{ steps: Next[]; grace: string } | null>(null);
  useEffect(() => {
    let asked = true; // a late answer is about a grace period that is no longer written there
    ask<{ next: Next[] }>(inLanguage(`/api/pods/${uid}/plan`, { grace })).then((got) => asked && setNext({ steps: got.next, grace }), () => asked && setNext(null));
    return () => void (asked = false);
  }, [uid, grace, language]);
  return next && <Coming next={next.steps} title={next.grace === "" ? t("ifDeleted") : t("ifDeletedWith", { s: Number(next.grace) })} />;
}

export function Steps({ story, at, chosen, choose }: { story: Story; at: number; chosen: number | null; choose: (n: number) => void }) {
  const [details, setDetails] = useState(false);
  const shown = story.steps.filter((step) => step.at <= at && (details || step.level <= 1 || step.n === chosen));
  return (
    <section aria-labelledby="steps">
      <h2 id="steps">{t("steps")}</h2>
      <label class="check"><input type="checkbox" checked={details} onChange={(event) => setDetails(event.currentTarget.checked)} /> {t("details")}</label>
      <ol class="steps">{shown.map((step) => <StepRow key={step.n} step={step} open={step.n === chosen} choose={choose} />)}</ol>
    </section>
  );
}

/** The step of the tour that explains it. */
function Lesson({ rule }: { rule: string }) {
  const View = useView("lesson");
  return View && <View rule={rule} />;
}

function StepRow({ step, open, choose }: { step: Step; open: boolean; choose: (n: number) => void }) {
  const here = location.hash.startsWith("#/tour") || store.rollout !== null;
  return (
    <li value={step.n} class={open ? "chosen" : ""} id={`step-${step.n}`}>
      <button class={`step s-${step.style || "plain"}`} aria-expanded={open} onClick={() => choose(open ? -1 : step.n)}>
        <span class="when">{seconds(step.at)} s</span>
        <span class="actor">{step.actor}</span>
        <span class="text">{step.container ? `${step.container}: ` : ""}{step.text}{step.evidence === "observed" ? "" : ` (${t(`evidence.${step.evidence}` as "evidence.inferred")})`}</span>
      </button>
      {open && (
        <dl class="about">
          {step.meaning && <><dt>{t("meaning")}</dt><dd>{step.meaning}</dd></>}
          {step.rule && (
            <>
              <dt>{t("rule")}</dt>
              <dd>{step.explain} <code>{step.rule}</code> {step.source && <a href={step.source} target="_blank" rel="noreferrer noopener">{t("source")}</a>}</dd>
            </>
          )}
          {step.rule && !here && <Lesson rule={step.rule} />}
          {step.cause !== null && <dd><button class="link" onClick={() => choose(step.cause as number)}>{t("cause", { n: step.cause })}</button></dd>}
        </dl>
      )}
    </li>
  );
}
