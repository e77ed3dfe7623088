// One Pod: its end as it happens, what comes next, and what one may do.

import { useEffect, useState } from "preact/hooks";
import { Budget, Containers, LastWords, Legend } from "./ended";
import { beginning, nextWords, scaleOf, seconds, since } from "./lanes";
import { useView } from "./later";
import { Prose, Said } from "./said";
import { saved } from "./saved";
import { Steps } from "./steps";
import { ask, calm, inLanguage, store, useStore, useTicks } from "./store";
import { language, t } from "./texts";
import { Timeline } from "./timeline";
import type { Next, Pod, Story } from "./types";

export function PodView({ uid, moment }: { uid: string; moment: number | null }) {
  const { pods, story, ends } = useStore();
  const [at, setAt] = useState<number | null>(moment);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [stretch, setStretch] = useState(saved !== null);
  const [chosen, setChosen] = useState<number | null>(null);
  const [grace, setGrace] = useState("");
  useEffect(() => setGrace(""), [uid]);
  useEffect(() => store.follow(store.labels, uid), [uid]);
  useEffect(() => setAt(moment), [moment]);
  const mine = story?.uid === uid ? story : null;
  const live = at === null;
  useTicks(live && !!mine?.ongoing, calm.matches ? 2 : 12);
  // Stretched, it plays as fast over the picture everywhere: waits pass quickly, and bursts slowly.
  const played = (now: number, passed: number): number => {
    const told = store.story;
    if (!told || !stretch || told.ongoing) return now + passed;
    const scale = scaleOf({ story: told, at: now, live: false, stretch });
    return scale.moment(scale.place(now) + passed / (14 + told.steps.length / 8));
  };
  useEffect(() => {
    if (!playing) return;
    // By the time that has passed: in a slow browser, or a tab behind others, timers come late.
    let last = performance.now();
    const timer = setInterval(() => {
      const passed = performance.now() - last;
      last += passed;
      setAt((now) => {
        if (now === null) return now; // live again, and the timer is not yet gone
        const then = played(now, (passed / 1000) * speed);
        if (then < store.storyNow()) return then;
        setPlaying(false);
        return store.story?.ongoing || saved ? null : store.storyNow();
      });
    }, calm.matches ? 500 : 40);
    return () => clearInterval(timer);
  }, [playing, speed, stretch]);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key !== " " || (event.target as HTMLElement).closest("input,button,select,textarea,a,summary")) return;
      event.preventDefault();
      if (playing) setPlaying(false);
      else setAt((now) => (now === null ? store.storyNow() : null));
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [playing]);

  const pod = pods.get(uid);
  const end = ends.get(uid);
  const who = pod ?? mine ?? end;
  const shown = at ?? store.storyNow();
  const seek = (moment: number) => (setPlaying(false), setAt(moment));
  const first = mine ? (stretch && !mine.ongoing ? Math.min(mine.start, 0) : beginning(mine)) : 0;
  const walk = (by: number) => {
    const steps = mine!.steps;
    const here = steps.findIndex((step) => step.n === chosen);
    const from = here >= 0 ? here : steps.filter((step) => step.at <= shown).length - Number(by > 0);
    const step = steps[Math.min(steps.length - 1, Math.max(0, from + by))];
    if (step) (seek(step.at), setChosen(step.n));
  };
  // Of a page that was saved it comes first; where a story grows, nothing moves the picture.
  const summary = mine && <><Findings story={mine} /><Budget story={mine} /></>;
  return (
    <>
      {(!saved || saved.reports || saved.stories.length > 1) && <p class="crumbs"><a href="#/">{t(saved?.reports ? "rollout" : "back")}</a></p>}
      <h1>{who ? `${who.namespace}/${who.name}` : uid}</h1>
      <p class="state">
        {mine?.words}{mine?.why && ` · ${mine.why}`} {!pod && who ? <span class="tag">{t("gone")}</span> : ""}
        {pod?.deletion && (pod.stage === "held" ? <span class="tag">{t("stage.held")}</span> : <Grace at={pod.deletion.at} />)}
      </p>
      {!mine && <p class="hint">{t("waiting")}</p>}
      {mine && <p class="verdict">{mine.verdict}</p>}
      {mine && <p class="hint">{mine.about}</p>}
      {saved && summary}
      {mine && (
        <section aria-labelledby="picture">
          <h2 id="picture">{t("picture")}</h2>
          <p class="hint">{since(mine)} {t("pictureHelp")}</p>
          <div class="player">
            <button id="pause" aria-pressed={!live} onClick={() => (setPlaying(false), setAt(live ? shown : null))}>{t(live ? "pause" : mine.ongoing ? "live" : "toEnd")}</button>
            <button id="play" onClick={() => (setAt(live || shown >= store.storyNow() ? first : shown), setPlaying(true))}>{t("play")}</button>
            <label>{t("speed")}
              <select id="speed" value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
                {[2, 1, 0.5, 0.2, 0.05].map((each) => <option key={each} value={each}>{each} ×</option>)}
              </select>
            </label>
            <label class="scrub">{t("moment")}
              <input id="scrub" type="range" min={first} max={store.storyNow()} step="any" value={shown}
                aria-valuetext={`${seconds(shown)} s`}
                onInput={(event) => seek(Number(event.currentTarget.value))} />
            </label>
            <output id="clock">{seconds(shown)} s</output>
            <a href={`#/pod/${uid}/at/${shown.toFixed(3)}`}>{t("link")}</a>
            {!store.ended && <a href={inLanguage(`/api/pods/${uid}/page`)} download>{t("export")}</a>}
            {!mine.ongoing && <label class="check"><input id="stretch" type="checkbox" checked={stretch} onChange={(event) => setStretch(event.currentTarget.checked)} /> {t("stretch")}</label>}
          </div>
          <Said text={lastWords(mine, shown, chosen)} />
          <Timeline story={mine} at={shown} live={live && mine.ongoing && !store.ended} chosen={chosen} choose={setChosen} stretch={stretch} walk={walk} seek={seek} />
          <Legend story={mine} />
        </section>
      )}
      {mine && mine.zero && (mine.ongoing || pod?.deletion) && <Coming next={mine.next} title={t("next")} now={store.storyNow()} />}
      {mine && pod && !store.ended && !pod.deletion && <WhatIf uid={uid} grace={grace} />}
      {pod && !store.ended && store.cluster.mayWrite && <Doing pod={pod} grace={grace} setGrace={setGrace} />}
      {!saved && summary}
      {mine && !mine.ongoing && <Containers story={mine} />}
      {mine && <LastWords story={mine} />}
      {mine && <Steps story={mine} at={shown} chosen={chosen} choose={setChosen} />}
      {mine && mine.output.length > 0 && (
        <section>
          <h2 id="output">{t("outputTitle")}</h2>
          <pre class="log" tabIndex={0} aria-labelledby="output" role="region">
            {mine.output.filter((line) => line.at <= shown).map((line, index) => (
              <span key={index} class={line.note ? "hint" : line.err ? "err" : ""}>{line.note ? `${line.text}\n` : `${seconds(line.at).padStart(9)} s  ${line.container}  ${line.text}\n`}</span>
            ))}
          </pre>
        </section>
      )}
      {pod && !store.ended && <Facts pod={pod} />}
      {mine && saved && <p class="hint">{t("evidenceHelp")}</p>}
    </>
  );
}

/** What is said when it is listened to: the record that is chosen, or the last one. */
function lastWords(story: Story, at: number, chosen: number | null): string {
  const step = story.steps.find((each) => each.n === chosen) ?? story.steps.findLast((each) => each.at <= at && each.level <= 1);
  return step ? `${step.n}. ${seconds(step.at)} s ${step.actor}${step.container && ` ${step.container}`}: ${step.text}` : "";
}

/** The worst first; what is true of several containers once. */
function Findings({ story }: { story: Story }) {
  const found = new Map<string, Story["findings"][number] & { of: string[] }>();
  for (const each of story.findings) {
    const key = `${each.id} ${each.severity} ${each.text} ${each.advice}`;
    found.set(key, { ...each, of: [...(found.get(key)?.of ?? []), each.container] });
  }
  const ranks = ["problem", "warning", "info"];
  const sorted = [...found.values()].sort((a, b) => ranks.indexOf(a.severity) - ranks.indexOf(b.severity));
  const notKnown = story.ongoing ? [] : story.notKnown;
  return (
    <>
      {sorted.length > 0 && (
        <section aria-labelledby="findings">
          <h2 id="findings">{t("findings")}</h2>
          <ul class="findings">
            {sorted.map((each) => <li key={each.id + each.text} class={each.severity}><b>{t(`severity.${each.severity}`)}:</b> <Prose text={each.text} />{each.of.length > 1 && ` (${each.of.join(", ")})`} {each.advice && <span class="advice">→ <Prose text={each.advice} /></span>}</li>)}
          </ul>
        </section>
      )}
      {notKnown.length > 0 && (
        <section aria-labelledby="not-known">
          <h2 id="not-known">{t("notKnown")}</h2>
          <ul class="findings">{notKnown.map((each) => <li key={each}>{each}</li>)}</ul>
        </section>
      )}
    </>
  );
}

function Doing(props: { pod: Pod; grace: string; setGrace: (seconds: string) => void }) {
  const View = useView("act");
  return View && <View {...props} />;
}

function Facts({ pod }: { pod: Pod }) {
  const View = useView("facts");
  return View && <View pod={pod} />;
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
