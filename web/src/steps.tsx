// The steps of a story: each with its rule, its facts, its cause.

import { useState } from "preact/hooks";
import { seconds } from "./lanes";
import { useView } from "./later";
import { saved } from "./saved";
import { store } from "./store";
import { t } from "./texts";
import type { Step, Story } from "./types";

interface Choice {
  story: Story;
  chosen: number | null;
  choose: (n: number) => void;
}

export function Steps({ story, at, chosen, choose }: Choice & { at: number }) {
  const [details, setDetails] = useState(false);
  const shown = story.steps.filter((step) => step.at <= at && (details || step.level <= 1 || step.n === chosen));
  return (
    <section aria-labelledby="steps">
      <h2 id="steps">{t("steps")}</h2>
      <label class="check"><input type="checkbox" checked={details} onChange={(event) => setDetails(event.currentTarget.checked)} /> {t("details")}</label>
      <ol class="steps">{shown.map((step) => <StepRow key={step.n} step={step} story={story} chosen={chosen} choose={choose} />)}</ol>
      {story.others.map((group) => (
        <details key={group.title}>
          <summary>{group.title}</summary>
          {group.notes.map((note) => <p key={note} class="hint">{note}</p>)}
          <ul class="steps">{group.steps.map((step, index) => <OtherRow key={index} step={step} story={story} />)}</ul>
        </details>
      ))}
    </section>
  );
}

/** The step of the tour that explains it. */
function Lesson({ rule }: { rule: string }) {
  const View = useView("lesson");
  return View && <View rule={rule} />;
}

function Words({ step }: { step: Step }) {
  return (
    <>
      <span class="when">{seconds(step.at)} s</span>
      <span class="actor">{step.actor}</span>
      <span class="text">{step.container ? `${step.container}: ` : ""}{step.text}{step.evidence === "observed" ? "" : ` (${t(`evidence.${step.evidence}`)})`}</span>
    </>
  );
}

function StepRow({ step, story, chosen, choose }: Choice & { step: Step }) {
  const open = step.n === chosen;
  const effects = open ? story.steps.filter((each) => each.cause === step.n) : [];
  const link = (n: number) => <button key={n} class="link" onClick={() => choose(n)}>{n}</button>;
  return (
    <li value={step.n!} class={open ? "chosen" : ""} id={`step-${step.n}`}>
      <button class={`step s-${step.style || "plain"}`} aria-expanded={open} onClick={() => choose(open ? -1 : step.n!)}><Words step={step} /></button>
      {open && (
        <dl class="about">
          {story.meanings[step.kind] && <><dt>{t("meaning")}</dt><dd>{story.meanings[step.kind]}</dd></>}
          <Behind step={step} story={story} />
          {(step.cause !== null || effects.length > 0) && <dt>{t("causes")}</dt>}
          {step.cause !== null && <dd><button class="link" onClick={() => choose(step.cause!)}>{t("cause", { n: step.cause })}</button></dd>}
          {effects.length > 0 && <dd>{t("effects")} {effects.map((each) => link(each.n!))}</dd>}
        </dl>
      )}
    </li>
  );
}

/** Facts, and the rule. */
function Behind({ step, story }: { step: Step; story: Story }) {
  const rule = story.rules[step.rule];
  const here = saved || location.hash.startsWith("#/tour") || store.rollout !== null;
  return (
    <>
      {step.facts.length > 0 && <><dt>{t("factsOf")}</dt><dd class="step-facts">{step.facts.map(([name, value]) => <span key={name}>{name} <b>{value}</b></span>)}</dd></>}
      {rule && (
        <>
          <dt>{t("rule")}</dt>
          <dd>{rule.explain} <code>{step.rule}</code> {rule.source && <a href={rule.source} target="_blank" rel="noreferrer noopener">{t("source")}</a>}</dd>
          {!here && <Lesson rule={step.rule} />}
        </>
      )}
    </>
  );
}

/** Of what has no mark in the picture. */
function OtherRow({ step, story }: { step: Step; story: Story }) {
  return (
    <li>
      <div class={`step s-${step.style || "plain"}`}><Words step={step} /></div>
      <dl class="about"><Behind step={step} story={story} /></dl>
    </li>
  );
}
