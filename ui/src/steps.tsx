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
      <Table name={t("steps")}>{shown.map((step) => <StepRow key={step.n} step={step} story={story} chosen={chosen} choose={choose} />)}</Table>
      {story.others.map((group) => (
        <details key={group.title}>
          <summary>{group.title}</summary>
          {group.notes.map((note) => <p key={note} class="hint">{note}</p>)}
          <Table name={group.title}>{group.steps.map((step, index) => <OtherRow key={index} step={step} story={story} />)}</Table>
        </details>
      ))}
    </section>
  );
}

interface Around { children?: preact.ComponentChildren }

/** The timeline, for everybody: the picture shows the same. */
function Table({ name, children }: Around & { name: string }) {
  return (
    <table class="steps" aria-label={name}>
      <thead><tr><th scope="col">#</th>{(["moment", "who", "what"] as const).map((each) => <th key={each} scope="col">{t(each)}</th>)}</tr></thead>
      <tbody>{children}</tbody>
    </table>
  );
}

/** The step of the tour that explains it. */
function Lesson({ rule }: { rule: string }) {
  const View = useView("lesson");
  return View && <View rule={rule} />;
}

function Cells({ step, children }: Around & { step: Step }) {
  return (
    <>
      {step.n === null ? <td /> : <th scope="row">{step.n}</th>}
      <td class="when">{seconds(step.at)} s</td>
      <td class="actor">{step.actor}</td>
      <td class="text">{children}</td>
    </>
  );
}

const words = (step: Step): string => `${step.container ? `${step.container}: ` : ""}${step.text}${step.evidence === "observed" ? "" : ` (${t(`evidence.${step.evidence}`)})`}`;

function StepRow({ step, story, chosen, choose }: Choice & { step: Step }) {
  const open = step.n === chosen;
  const effects = open ? story.steps.filter((each) => each.cause === step.n) : [];
  const link = (n: number) => <button key={n} class="link" onClick={() => choose(n)}>{n}</button>;
  return (
    <tr class={`s-${step.style}${open ? " chosen" : ""}`} id={`step-${step.n}`}><Cells step={step}>
      <button class="step" aria-expanded={open} onClick={() => choose(open ? -1 : step.n!)}>{words(step)}</button>
      {open && (
        <dl class="about">
          {story.meanings[step.kind] && <><dt>{t("meaning")}</dt><dd>{story.meanings[step.kind]}</dd></>}
          <Behind step={step} story={story} />
          {(step.cause !== null || effects.length > 0) && <dt>{t("causes")}</dt>}
          {step.cause !== null && <dd><button class="link" onClick={() => choose(step.cause!)}>{t("cause", { n: step.cause })}</button></dd>}
          {effects.length > 0 && <dd>{t("effects")} {effects.map((each) => link(each.n!))}</dd>}
        </dl>
      )}
    </Cells></tr>
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
    <tr class={`s-${step.style}`}><Cells step={step}>
      <div class="step">{words(step)}</div>
      <dl class="about"><Behind step={step} story={story} /></dl>
    </Cells></tr>
  );
}
