import { createElement, Fragment, render } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import * as command from "./command";
import * as lanes from "./lanes";
import * as later from "./later";
import { Overview } from "./overview";
import * as pod from "./pod";
import "./rollout.css";
import * as said from "./said";
import * as scale from "./scale";
import { saved } from "./saved";
import { SavedPage } from "./saved_page";
import * as steps from "./steps";
import * as stores from "./store";
import "./style.css";
import * as texts from "./texts";
import "./tour.css";
import type { Recorded } from "./tour-data";

const { ask, store, useStore } = stores;
const { choose, t } = texts;

/** What the files of other views take from this one (build.mjs has the same names of Preact: the rest of it is not in the page). */
const preact = { createElement, Fragment };
const hooks = { useEffect, useLayoutEffect, useReducer, useRef, useState };
Object.assign(globalThis, {
  lastcall: { preact, "preact/hooks": hooks, "./command": command, "./lanes": lanes, "./later": later, "./said": said, "./scale": scale, "./steps": steps, "./store": stores, "./texts": texts },
});

/** A view in a file of its own. */
function Tour(props: { id: string; recorded?: Recorded }) {
  const View = later.useView("tour");
  return View ? <View {...props} /> : <p class="hint" role="status">{t("connecting")}</p>;
}

function Later({ name }: { name: "rollout" | "history" }) {
  const View = later.useView(name);
  return View ? <View /> : <p class="hint" role="status">{t("connecting")}</p>;
}

function route(): string[] {
  return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean);
}

function App() {
  const [path, setPath] = useState(route());
  const [, setLanguage] = useState(texts.language);
  const { cluster, connected, ended, missed, rollout, story } = useStore();
  useEffect(() => {
    let view = route().slice(0, 2).join();
    const go = () => {
      setPath(route());
      scrollTo(0, 0);
      // What had the focus is gone: whoever hears the page, or uses keys alone, goes on in the new view.
      const now = route().slice(0, 2).join();
      if (now !== view) document.getElementById("main")?.focus({ preventScroll: true });
      view = now;
    };
    addEventListener("hashchange", go);
    return () => removeEventListener("hashchange", go);
  }, []);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest("input,textarea,select")) return;
      const to = { o: "#/", e: "#/ends", t: "#/tour" }[event.key];
      if (to) location.hash = to;
      if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLInputElement>("#labels,#search")?.focus();
      }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const [first, second, third, moment] = path;
  const isRollout = first === "rollout" || (!first && !location.hash && rollout !== null);
  useEffect(() => {
    if (first !== "pod" && first !== "tour") store.follow(store.labels, "");
  }, [first]);
  const name = first === "pod" ? (store.pods.get(second ?? "") ?? (story?.uid === second ? story : null) ?? store.ends.get(second ?? ""))?.name ?? "Pod" : isRollout ? t("rollout") : t(first === "ends" ? "history" : first === "tour" ? "tour" : "overview");
  useEffect(() => {
    document.title = `${name} · ${cluster.name} · lastcall`;
  }, [name, cluster.name]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>{t("skip")}</a>
      <header class="top">
        <span class="logo">lastcall</span>
        <nav aria-label="lastcall">
          {rollout && <a href="#/rollout" aria-current={isRollout ? "page" : undefined}>{t("rollout")}</a>}
          <a href="#/" aria-current={(!first && !isRollout) || first === "pod" ? "page" : undefined}>{t("overview")}</a>
          <a href="#/ends" aria-current={first === "ends" ? "page" : undefined}>{t("history")}</a>
          {!rollout && <a href="#/tour" aria-current={first === "tour" ? "page" : undefined}>{t("tour")}</a>}
        </nav>
        <span class={`status ${ended ? "over" : connected ? cluster.state : "lost"}`} role="status">
          {ended || cluster.state === "over" ? t("over") : connected ? (cluster.state === "running" ? `${t("running")} · ${cluster.kubernetesVersion}` : t(cluster.state === "away" ? "gone" : "connecting")) : t("connecting")}
        </span>
        <Languages chosen={() => (setLanguage(texts.language), store.tellAnew())} />
      </header>
      {ended ? (
        <p class="banner" role="alert">{t(rollout && ended === "trace" ? "experimentEnded" : ({ page: "pageEnded", trace: "traceEnded", cluster: "clusterEnded", file: "over" } as const)[ended])}</p>
      ) : !connected && cluster.name ? (
        <p class="banner" role="alert">{t("lost")}</p>
      ) : (
        connected && cluster.state === "away" && !rollout && <p class="banner" role="alert">{t("away")}</p>
      )}
      {missed && <p class="banner" id="missed" role="alert">{t("missed", { a: texts.clock(missed[0]), b: texts.clock(missed[1]) })}</p>}
      <main id="main" tabIndex={-1}>
        {first === "pod" && second ? (
          <pod.PodView key={second} uid={second} moment={third === "at" && moment ? Number(moment) : null} />
        ) : first === "tour" ? (
          <Tour id={second ?? ""} />
        ) : isRollout ? (
          <Later name="rollout" />
        ) : first === "ends" ? (
          <Later name="history" />
        ) : (
          <Overview />
        )}
      </main>
    </>
  );
}

/** Bring the token of a link, once; it does not stay in the address. */
async function enter(): Promise<boolean> {
  const [, token, view = ""] = /^#token=([^/]+)(\/.*)?/.exec(location.hash) ?? [];
  if (token) history.replaceState(null, "", view ? `/#${view}` : "/");
  // A link that is opened in this tab changes the fragment alone.
  addEventListener("hashchange", () => location.hash.startsWith("#token=") && location.reload());
  return (await ask<{ known: boolean }>("/api/enter", token ? { token } : undefined)).known;
}

/** A button for each language but the reader's. */
function Languages({ chosen }: { chosen: () => void }) {
  return <>{texts.LANGUAGES.filter((each) => each !== texts.language).map((each) => <button key={each} class="link" lang={each} onClick={() => (choose(each), chosen())}>{texts.nameOf(each)}</button>)}</>;
}

function Closed() {
  return <main class="closed"><h1>{t("closedTitle")}</h1><p>{t("closedText")}</p></main>;
}

/** A page without a server: what happened is in a file, beside it or its own. */
function Alone({ recorded }: { recorded: Recorded | undefined }) {
  const [path, setPath] = useState(route());
  const [, setLanguage] = useState(texts.language);
  useEffect(() => {
    const go = () => (setPath(route()), scrollTo(0, 0));
    addEventListener("hashchange", go);
    return () => removeEventListener("hashchange", go);
  }, []);
  return (
    <>
      <header class="top">
        <span class="logo">lastcall</span>
        <span>{saved ? saved.about : t("tour")}</span>
        {!saved && <Languages chosen={() => setLanguage(texts.language)} />}
      </header>
      <main id="main" tabIndex={-1}>{saved ? <SavedPage saved={saved} path={path} /> : <Tour id={path[1] ?? ""} {...(recorded ? { recorded } : {})} />}</main>
    </>
  );
}

const recorded = (globalThis as { LASTCALL_TOUR?: Recorded }).LASTCALL_TOUR;
document.documentElement.lang = texts.language;
const app = document.getElementById("app")!;
app.replaceChildren();
if (saved) store.restore(saved);
if (saved || recorded) {
  const draw = () => render(<Alone recorded={recorded} />, app);
  // In a file, what other views are made of follows this script.
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", draw);
  else draw();
} else {
  const entered = enter();
  render(<App />, app);
  void entered.then((known) => {
    if (!known) return render(<Closed />, app);
    store.begin(route()[0] === "pod" ? (route()[1] ?? "") : "");
  });
}
