import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { History } from "./history";
import { Overview } from "./overview";
import { PodView } from "./pod";
import { RolloutView } from "./rollout";
import { r } from "./rollout_texts";
import { store, useStore } from "./store";
import "./style.css";
import { choose, language, t } from "./texts";
import { Tour } from "./tour";
import type { Recorded } from "./tour-data";

function route(): string[] {
  return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean);
}

function App() {
  const [path, setPath] = useState(route());
  const [, setLanguage] = useState(language);
  const { cluster, connected, ended, rollout, story } = useStore();
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
  const name = first === "pod" ? (store.pods.get(second ?? "") ?? (story?.uid === second ? story : null) ?? store.ends.get(second ?? ""))?.name ?? "Pod" : isRollout ? r("title") : t(first === "ends" ? "history" : first === "tour" ? "tour" : "overview");
  useEffect(() => {
    document.title = `${name} · ${cluster.name} · lastcall`;
  }, [name, cluster.name]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>{t("skip")}</a>
      <header class="top">
        <span class="logo">lastcall</span>
        <nav aria-label="lastcall">
          {rollout && <a href="#/rollout" aria-current={isRollout ? "page" : undefined}>{r("title")}</a>}
          <a href="#/" aria-current={(!first && !isRollout) || first === "pod" ? "page" : undefined}>{t("overview")}</a>
          <a href="#/ends" aria-current={first === "ends" ? "page" : undefined}>{t("history")}</a>
          {!rollout && <a href="#/tour" aria-current={first === "tour" ? "page" : undefined}>{t("tour")}</a>}
        </nav>
        <span class={`status ${ended ? "over" : connected ? cluster.state : "lost"}`} role="status">
          {ended || cluster.state === "over" ? t("over") : connected ? (cluster.state === "running" ? `${t("running")} · ${cluster.kubernetesVersion}` : t(cluster.state === "away" ? "gone" : "connecting")) : t("connecting")}
        </span>
        <button class="link" lang={language === "ja" ? "en" : "ja"} onClick={() => (choose(language === "ja" ? "en" : "ja"), setLanguage(language), store.tellAnew())}>{t("language")}</button>
      </header>
      {ended ? (
        <p class="banner" role="alert">{t(rollout && ended === "trace" ? "experimentEnded" : ({ page: "pageEnded", trace: "traceEnded", cluster: "clusterEnded" } as const)[ended])}</p>
      ) : !connected && cluster.name ? (
        <p class="banner" role="alert">{t("lost")}</p>
      ) : (
        connected && cluster.state === "away" && !rollout && <p class="banner" role="alert">{t("away")}</p>
      )}
      <main id="main" tabIndex={-1}>
        {first === "pod" && second ? (
          <PodView key={second} uid={second} moment={third === "at" && moment ? Number(moment) : null} />
        ) : first === "tour" ? (
          <Tour id={second ?? ""} />
        ) : isRollout ? (
          <RolloutView />
        ) : first === "ends" ? (
          <History />
        ) : (
          <Overview />
        )}
      </main>
    </>
  );
}

/** The tour of the documentation: no server, no cluster, and what happened is in a file beside the page. */
function Alone({ recorded }: { recorded: Recorded }) {
  const [path, setPath] = useState(route());
  const [, setLanguage] = useState(language);
  useEffect(() => {
    const go = () => setPath(route());
    addEventListener("hashchange", go);
    return () => removeEventListener("hashchange", go);
  }, []);
  return (
    <>
      <header class="top">
        <span class="logo">lastcall</span>
        <span>{t("tour")}</span>
        <button class="link" lang={language === "ja" ? "en" : "ja"} onClick={() => (choose(language === "ja" ? "en" : "ja"), setLanguage(language))}>{t("language")}</button>
      </header>
      <main id="main" tabIndex={-1}><Tour id={path[1] ?? ""} recorded={recorded} /></main>
    </>
  );
}

const recorded = (globalThis as { LASTCALL_TOUR?: Recorded }).LASTCALL_TOUR;
// The token has been used: it need not stay in the address.
if (location.search && !recorded) history.replaceState(null, "", `/${location.hash}`);
document.documentElement.lang = language;
if (!recorded) store.follow("", route()[0] === "pod" ? (route()[1] ?? "") : "");
render(recorded ? <Alone recorded={recorded} /> : <App />, document.getElementById("app")!);
