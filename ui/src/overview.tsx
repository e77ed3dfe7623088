// Nodes, workloads, and Pods as living cells.

import { Component } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, store, useStore, useTicks } from "./store";
import { clock, t } from "./texts";
import type { Pod, Workload } from "./types";

type Grouping = "byNode" | "byNamespace" | "byWorkload";

export function state(pod: Pod): "terminating" | "failed" | "succeeded" | "pending" | "ready" | "notReady" {
  if (pod.deletion) return "terminating";
  if (pod.phase === "Failed") return "failed";
  if (pod.phase === "Succeeded") return "succeeded";
  if (pod.phase === "Pending") return "pending";
  return pod.isReady ? "ready" : "notReady";
}

const SIGNS = { terminating: "×", failed: "!", succeeded: "✓", pending: "…", ready: "●", notReady: "○" };

export function graceLeft(pod: Pod): number {
  return pod.deletion ? (Date.parse(pod.deletion.at) - store.now()) / 1000 : 0;
}

const restarted = (pod: Pod): string => (pod.restarts ? t("restarted", { n: pod.restarts }) : "");

const stageWords = (pod: Pod): string => (pod.stage ? t(`stage.${pod.stage}` as "stage.unseen", { t: pod.watched ? clock(pod.watched) : "" }) : "");

function words(pod: Pod): string {
  const said = [t(state(pod)), stageWords(pod), pod.reason, restarted(pod)].filter(Boolean).join(", ");
  return `${pod.namespace}/${pod.name}: ${said}`;
}

function Ring({ pod }: { pod: Pod }) {
  const { grace } = pod.deletion ?? { grace: 0 };
  const passed = Math.max(0, grace - graceLeft(pod));
  const time = { animationDuration: `${Math.max(grace, 0.01)}s`, animationDelay: `-${passed}s` };
  return (
    <svg class="ring" viewBox="0 0 36 36" aria-hidden="true">
      <circle class="ring-back" cx="18" cy="18" r="15" />
      <circle class="ring-left" cx="18" cy="18" r="15" pathLength="100" style={time} />
    </svg>
  );
}

interface CellProps {
  pod: Pod;
  size: string;
  first: boolean;
}

/** Drawn again only when its own Pod has changed: there may be thousands. */
class Cell extends Component<CellProps> {
  override shouldComponentUpdate(next: CellProps): boolean {
    const { pod, size, first } = this.props;
    return next.pod !== pod || next.size !== size || next.first !== first;
  }

  override render({ pod, size, first }: CellProps) {
    const now = state(pod);
    return (
      <a
        class={`cell ${now} ${size}`}
        href={`#/pod/${pod.uid}`}
        tabIndex={first ? 0 : -1}
        title={words(pod)}
        data-pod={`${pod.namespace}/${pod.name}`}
      >
        <span class="sign" aria-hidden="true">
          {now === "terminating" && <Ring key={pod.deletion?.at} pod={pod} />}
          <span>{SIGNS[now]}</span>
        </span>
        {size !== "wide" && <span class="unseen">{words(pod)}</span>}
        {size === "wide" && (
          <span class="what">
            <b>{pod.name}</b> <small>{stageWords(pod) || pod.reason || t(now)}</small> {pod.restarts > 0 && <small>{restarted(pod)}</small>}
          </span>
        )}
      </a>
    );
  }
}

/** Not localeCompare: of thousands of names that takes longer than a frame. */
const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function groupOf(pod: Pod, by: Grouping): string {
  if (by === "byNode") return pod.node || t("noNode");
  if (by === "byNamespace") return pod.namespace;
  return pod.owner ? `${pod.namespace}/${pod.owner.kind} ${pod.owner.name}` : t("nobody");
}

/** The arrows move among the cells of a group. */
function move(event: KeyboardEvent): void {
  const cell = (event.target as HTMLElement).closest(".cell");
  const cells = [...(cell?.parentElement?.children ?? [])] as HTMLElement[];
  const at = cells.indexOf(cell as HTMLElement);
  if (at < 0) return;
  const row = cells.filter((each) => each.offsetTop === cells[0]!.offsetTop).length;
  const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row };
  const target = cells[at + (steps[event.key] ?? NaN)];
  if (target) {
    event.preventDefault();
    target.focus();
  }
}

export function Overview() {
  const { pods, nodes, workloads, cluster, ended } = useStore();
  const [name, setName] = useState("");
  const [namespace, setNamespace] = useState("");
  const [labels, setLabels] = useState(store.labels);
  const [error, setError] = useState("");
  const [by, setBy] = useState<Grouping>("byNode");
  useEffect(() => {
    if (labels === store.labels) return setError("");
    let asked = true; // whoever has gone to a Pod, or wrote on, is not led back by a late answer
    const timer = setTimeout(() => {
      ask(`/api/select?${new URLSearchParams({ labels })}`).then(
        () => asked && (setError(""), store.follow(labels, "")),
        (failure: Error) => asked && setError(failure.message),
      );
    }, 250);
    return () => ((asked = false), clearTimeout(timer));
  }, [labels]);

  const inNamespace = (each: { namespace: string }) => namespace === "" || each.namespace === namespace;
  const namespaces = [...new Set([...pods.values(), ...workloads.values()].map((each) => each.namespace).concat(namespace || []))].sort(inOrder);
  const shown = [...pods.values()].filter((pod) => inNamespace(pod) && pod.name.includes(name));
  const own = [...workloads].filter(([, each]) => inNamespace(each));
  const groups = new Map<string, Pod[]>();
  for (const pod of shown) {
    const key = groupOf(pod, by);
    const group = groups.get(key);
    if (group) group.push(pod);
    else groups.set(key, [pod]);
  }
  if (by === "byNode") for (const node of nodes.keys()) if (!name && !labels && !namespace && !groups.has(node)) groups.set(node, []);
  const size = shown.length <= 80 ? "wide" : shown.length <= 500 ? "medium" : "small";
  return (
    <>
      <h1>{cluster.name || "lastcall"}</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()} role="search">
        <label>
          {t("labels")}
          <input id="labels" value={labels} placeholder={t("labelsHint")} spellcheck={false} autocomplete="off"
            aria-invalid={error ? "true" : "false"} aria-describedby="labels-error"
            onInput={(event) => setLabels(event.currentTarget.value)} />
        </label>
        <label>
          {t("namespaceOf")}
          <select id="namespace" value={namespace} onChange={(event) => setNamespace(event.currentTarget.value)}>
            <option value="">{t("allNamespaces")}</option>
            {namespaces.map((each) => <option key={each} value={each}>{each}</option>)}
          </select>
        </label>
        <label>
          {t("name")}
          <input id="name" value={name} autocomplete="off" onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label>
          {t("group")}
          <select id="group" value={by} onChange={(event) => setBy(event.currentTarget.value as Grouping)}>
            {(["byNode", "byNamespace", "byWorkload"] as const).map((each) => (
              <option key={each} value={each}>{t(each)}</option>
            ))}
          </select>
        </label>
        <p id="labels-error" class="error" role="alert">{error}</p>
      </form>
      <Counts pods={shown} />
      {!shown.length && <p class="hint">{t(pods.size || labels || namespace ? "noneSelected" : ended || !cluster.mayWrite ? "noPods" : "none")}</p>}
      <div onKeyDown={move}>
        {[...groups].sort(([a], [b]) => a.localeCompare(b)).map(([key, group]) => {
          const node = by === "byNode" ? nodes.get(key) : undefined;
          const sorted = group.sort((a, b) => inOrder(a.namespace, b.namespace) || inOrder(a.name, b.name));
          return (
            <section class="group" key={key} aria-label={key}>
              <h2>
                {key} <small>{group.length}</small>
                {node && <span class={node.isReady ? "tag good" : "tag bad"}>{t(node.isReady ? "ready" : "notReady")}</span>}
                {node && node.taints.map((taint) => <span class="tag" key={taint}>{taint}</span>)}
                {node && <small class="version">{node.version}</small>}
              </h2>
              <div class={`cells ${size}`}>
                {sorted.map((pod, index) => <Cell key={pod.uid} pod={pod} size={size} first={index === 0} />)}
              </div>
            </section>
          );
        })}
      </div>
      {own.length > 0 && (
        <section>
          <h2>{t("workloads")}</h2>
          <ul class="workloads">
            {own.sort(([a], [b]) => a.localeCompare(b)).map(([key, each]) => (
              <li key={key} data-workload={key}>
                <b>{each.namespace}/{each.name}</b> <small>{each.kind}</small> <Progress of={each} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <p class="hint keys">{t("keys")}</p>
    </>
  );
}

/** How many of a workload's Pods are ready; of a Job how many have succeeded; of a CronJob its schedule. */
function Progress({ of }: { of: Workload }) {
  if (of.kind === "CronJob") {
    return <><code>{of.schedule}</code> <span>{t("activeJobs", { n: of.ready })}</span>{of.suspended && <span class="tag">{t("suspended")}</span>}</>;
  }
  const text = of.kind !== "Job" ? "ofNodes" : of.wanted === null ? "jobDone" : "ofJob";
  const tag = of.state === "Complete" ? "tag good" : of.state === "Failed" ? "tag bad" : "tag";
  return (
    <>
      <progress max={Math.max(1, of.wanted ?? of.ready)} value={of.ready} aria-label={of.name} />
      <span>{t(text, { r: of.ready, n: of.wanted ?? "?" })}</span>
      {of.state && <span class={tag}>{of.state}</span>}
    </>
  );
}

function Counts({ pods }: { pods: Pod[] }) {
  useTicks(pods.some((pod) => pod.deletion), 1);
  const counts = new Map<string, number>();
  for (const pod of pods) counts.set(state(pod), (counts.get(state(pod)) ?? 0) + 1);
  return (
    <ul class="counts" aria-label={t("legend")}>
      {(Object.keys(SIGNS) as (keyof typeof SIGNS)[]).map((each) => (
        <li key={each} class={counts.get(each) ? "" : "zero"}>
          <span class={`cell small ${each}`} aria-hidden="true"><span class="sign">{SIGNS[each]}</span></span>
          {t(each)} <b>{counts.get(each) ?? 0}</b>
        </li>
      ))}
    </ul>
  );
}
