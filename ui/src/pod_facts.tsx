// What kubectl describe, get -o yaml, logs and exec show.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./store";
import { t } from "./cluster_texts";
import type { Pod } from "./types";

const TABS = ["describe", "events", "logs", "terminal", "yaml"] as const;
type Tab = (typeof TABS)[number];

export function Facts({ pod }: { pod: Pod }) {
  const [tab, setTab] = useState<Tab>("describe");
  const choose = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const then = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]!;
    setTab(then);
    document.getElementById(`tab-${then}`)?.focus();
  };
  return (
    <section>
      <div role="tablist" class="tabs" onKeyDown={choose}>
        {TABS.map((each) => (
          <button key={each} role="tab" id={`tab-${each}`} aria-selected={tab === each} aria-controls="panel" tabIndex={tab === each ? 0 : -1} onClick={() => setTab(each)}>{t(each)}</button>
        ))}
      </div>
      <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "describe" && <Describe pod={pod} />}
        {tab === "events" && <Events uid={pod.uid} />}
        {tab === "logs" && <Logs uid={pod.uid} />}
        {tab === "terminal" && <Terminal uid={pod.uid} />}
        {tab === "yaml" && <Yaml uid={pod.uid} />}
      </div>
    </section>
  );
}

function Describe({ pod }: { pod: Pod }) {
  const rows: [string, string][] = [
    [t("phase"), [pod.phase, pod.reason].filter(Boolean).join(", ")],
    [t("ready"), `${pod.ready[0]}/${pod.ready[1]}`],
    [t("node"), pod.node || t("noNode")],
    [t("address"), pod.ip],
    [t("owner"), pod.owner ? `${pod.owner.kind} ${pod.owner.name}` : t("nobody")],
    [t("restarts"), String(pod.restarts)],
    [t("created"), pod.created],
    [t("labelsOf"), Object.entries(pod.labels).map(([key, value]) => `${key}=${value}`).join(", ")],
    ["UID", pod.uid],
  ];
  return (
    <>
      <dl class="facts">{rows.map(([key, value]) => <div key={key}><dt>{key}</dt><dd>{value || "-"}</dd></div>)}</dl>
      <States uid={pod.uid} />
    </>
  );
}

/** As kubectl describe words it. */
function stateWords(state: State | undefined): string {
  if (state?.running) return `Running, started ${state.running.startedAt ?? "?"}`;
  if (state?.waiting) return `Waiting: ${state.waiting.reason ?? "?"}`;
  const ended = state?.terminated;
  if (!ended) return "-";
  const how = ended.signal ? `signal ${ended.signal}` : `exit code ${ended.exitCode}`;
  return `Terminated: ${ended.reason ?? "?"}, ${how}, finished ${ended.finishedAt ?? "?"}`;
}

function States({ uid }: { uid: string }) {
  const [answer, error] = useAnswer<Obj>(`/api/pods/${uid}/object`, 2000);
  if (error) return <p class="error">{error}</p>;
  const status = answer?.object.status ?? {};
  const told = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? []), ...(status.ephemeralContainerStatuses ?? [])];
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("containers")}><table id="containers">
        <thead><tr>{(["container", "col.state", "col.last", "ready", "restarts", "col.image"] as const).map((key) => <th key={key} scope="col">{t(key)}</th>)}</tr></thead>
        <tbody>
          {answer && containersOf(answer.object).map(({ name, kind, image }) => {
            const own = told.find((each) => each.name === name);
            return (
              <tr key={name}>
                <td>{name} {kind && <small>{kind}</small>}</td><td>{stateWords(own?.state)}</td><td>{stateWords(own?.lastState)}</td>
                <td>{own?.ready ? "✓" : "✗"}</td><td>{own?.restartCount ?? 0}</td><td>{image}</td>
              </tr>
            );
          })}
        </tbody>
      </table></div>
      <div class="scroll" tabIndex={0} role="region" aria-label={t("conditions")}><table id="conditions">
        <thead><tr><th scope="col">{t("condition")}</th><th scope="col">Status</th><th scope="col">Reason</th><th scope="col">Message</th></tr></thead>
        <tbody>{(status.conditions ?? []).map((each) => <tr key={each.type}><td>{each.type}</td><td>{each.status}</td><td>{each.reason ?? ""}</td><td>{each.message ?? ""}</td></tr>)}</tbody>
      </table></div>
    </>
  );
}

/** What the server answers, again every `every` ms; 0 for once. */
function useAnswer<T>(path: string, every: number): [T | null, string] {
  const [answer, setAnswer] = useState<T | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let there = true;
    const look = () => void ask<T>(path).then((got) => there && (setAnswer(got), setError("")), (failure: Error) => there && setError(failure.message));
    look();
    const timer = every ? setInterval(look, every) : 0;
    return () => ((there = false), clearInterval(timer));
  }, [path, every]);
  return [answer, error];
}

interface Told { type: string; reason: string; message: string; count: number; from: string; at: string }

function Events({ uid }: { uid: string }) {
  const [answer, error] = useAnswer<{ events: Told[] }>(`/api/pods/${uid}/events`, 2000);
  if (error) return <p class="error">{error}</p>;
  if (!answer?.events.length) return <p class="hint">{t("empty")}</p>;
  return (
    <div class="scroll"><table>
      <thead><tr><th scope="col">Type</th><th scope="col">Reason</th><th scope="col">Message</th><th scope="col">×</th><th scope="col">From</th><th scope="col">{t("col.at")}</th></tr></thead>
      <tbody>{answer.events.map((each, index) => <tr key={index}><td>{each.type}</td><td>{each.reason}</td><td>{each.message}</td><td>{each.count}</td><td>{each.from}</td><td>{each.at}</td></tr>)}</tbody>
    </table></div>
  );
}

interface State {
  running?: { startedAt?: string };
  waiting?: { reason?: string };
  terminated?: { reason?: string; exitCode: number; signal?: number; finishedAt?: string };
}
interface Spec { name: string; image?: string; restartPolicy?: string }
interface Status { name: string; ready?: boolean; restartCount?: number; state?: State; lastState?: State }
interface PodObject {
  spec: { containers: Spec[]; initContainers?: Spec[]; ephemeralContainers?: Spec[] };
  status?: {
    containerStatuses?: Status[]; initContainerStatuses?: Status[]; ephemeralContainerStatuses?: Status[];
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
  };
}
interface Obj { object: PodObject; yaml: string }

/** Every container, those of the Pod itself first: kubectl logs and exec take the first where none is named. */
function containersOf({ spec }: PodObject): { name: string; kind: string; image: string }[] {
  const named = (list: Spec[] | undefined, kind: (each: Spec) => string) => (list ?? []).map((each) => ({ name: each.name, kind: kind(each), image: each.image ?? "" }));
  return [
    ...named(spec.containers, () => ""),
    ...named(spec.initContainers, (each) => (each.restartPolicy === "Always" ? "sidecar" : "init")),
    ...named(spec.ephemeralContainers, () => "ephemeral"),
  ];
}

function Containers({ uid, value, choose }: { uid: string; value: string; choose: (name: string) => void }) {
  const [answer] = useAnswer<Obj>(`/api/pods/${uid}/object`, 0);
  const found = answer ? containersOf(answer.object) : [];
  useEffect(() => { if (!value && found[0]) choose(found[0].name); }, [found[0]?.name]);
  return (
    <label>{t("container")}
      <select value={value} onChange={(event) => choose(event.currentTarget.value)}>{found.map(({ name, kind }) => <option key={name} value={name}>{kind ? `${name} (${kind})` : name}</option>)}</select>
    </label>
  );
}

function Logs({ uid }: { uid: string }) {
  const [container, setContainer] = useState("");
  const [previous, setPrevious] = useState(false);
  const query = new URLSearchParams({ container, previous: String(previous) });
  return (
    <>
      <div class="player">
        <Containers uid={uid} value={container} choose={setContainer} />
        <label class="check"><input type="checkbox" checked={previous} onChange={(event) => setPrevious(event.currentTarget.checked)} /> {t("previous")}</label>
      </div>
      {container && <LogText path={`/api/pods/${uid}/logs?${query}`} />}
    </>
  );
}

function LogText({ path }: { path: string }) {
  const [answer, error] = useAnswer<{ text: string }>(path, 2000);
  if (error) return <p class="error">{error}</p>;
  return <pre class="log" tabIndex={0} aria-label={t("logs")} role="region">{answer?.text || t("empty")}</pre>;
}

function Yaml({ uid }: { uid: string }) {
  const [answer, error] = useAnswer<Obj>(`/api/pods/${uid}/object`, 5000);
  if (error) return <p class="error">{error}</p>;
  return <pre class="log" tabIndex={0} aria-label="YAML" role="region">{answer?.yaml ?? ""}</pre>;
}

/** Of a Status, or of what is none. */
function messageOf(status: string): string {
  try {
    return (JSON.parse(status) as { message?: string }).message || status;
  } catch {
    return status;
  }
}

function Terminal({ uid }: { uid: string }) {
  const [container, setContainer] = useState("");
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const socket = useRef<WebSocket | null>(null);
  const screen = useRef<HTMLPreElement | null>(null);
  useEffect(() => () => socket.current?.close(), [uid]);
  useEffect(() => { if (screen.current) screen.current.scrollTop = screen.current.scrollHeight; }, [text]);
  const say = (more: string) => setText((before) => (before + more).slice(-100_000));
  const start = () => {
    socket.current?.close();
    const made = new WebSocket(`ws://${location.host}/api/pods/${uid}/exec?${new URLSearchParams({ container })}`);
    made.binaryType = "arraybuffer";
    const decoder = new TextDecoder();
    made.onopen = () => setOpen(true);
    made.onmessage = (event) => {
      const bytes = new Uint8Array(event.data as ArrayBuffer);
      if (bytes[0] === 1 || bytes[0] === 2) say(decoder.decode(bytes.subarray(1), { stream: true }));
      else if (bytes[0] === 3) {
        const status = decoder.decode(bytes.subarray(1));
        if (!status.includes('"Success"')) say(`\n${messageOf(status)}\n`);
      }
    };
    made.onclose = () => (setOpen(false), say(`\n${t("closed")}\n`));
    socket.current = made;
  };
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const input = (event.currentTarget as HTMLFormElement).elements.namedItem("line") as HTMLInputElement;
    say(`$ ${input.value}\n`);
    const line = new TextEncoder().encode(`${input.value}\n`);
    const message = new Uint8Array(line.length + 1);
    message.set(line, 1);
    socket.current?.send(message);
    input.value = "";
  };
  return (
    <>
      <p class="hint">{t("terminalHelp")}</p>
      <div class="player"><Containers uid={uid} value={container} choose={setContainer} />
        {!open && <button id="shell" onClick={start}>{t("connect")}</button>}
      </div>
      <pre class="log" ref={screen} tabIndex={0} role="log" aria-label={t("terminal")}>{text}</pre>
      {open && <form onSubmit={send}><label>{t("line")} <input name="line" id="line" autocomplete="off" spellcheck={false} /></label></form>}
    </>
  );
}
