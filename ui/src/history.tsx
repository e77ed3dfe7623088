// The ends that the cluster remembers.

import { useState } from "preact/hooks";
import { seconds } from "./lanes";
import { useStore } from "./store";
import { clock, language } from "./texts";
import { t } from "./cluster_texts";

/** With its day, unless that is today. */
function when(at: number): string {
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  return today ? clock(at) : date.toLocaleString(language);
}

export function History() {
  const { ends } = useStore();
  const [search, setSearch] = useState("");
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...ends.values()]
    .filter((end) => {
      const text = `${end.namespace}/${end.name} ${end.node} ${end.words} ${end.outcome} ${end.uid} ${end.exits.map((each) => `${each.container} ${each.signal ?? ""} ${each.code ?? ""}`).join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .sort((a, b) => b.at - a.at);
  return (
    <>
      <h1>{t("history")}</h1>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>{t("search")} <input id="search" type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} /></label>
      </form>
      {!rows.length && <p class="hint">{ends.size ? t("noneSelected") : t("historyNone")}</p>}
      {rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={t("history")}>
          <table>
            <thead><tr>{(["col.pod", "col.how", "col.exits", "col.when", "col.grace", "col.gone"] as const).map((key) => <th key={key} scope="col">{t(key)}</th>)}</tr></thead>
            <tbody>
              {rows.map((end) => (
                <tr key={end.uid} class={`o-${end.outcome}`}>
                  <td><a href={`#/pod/${end.uid}`}>{end.namespace}/{end.name}</a></td>
                  <td>{end.words}</td>
                  <td>{end.exits.map((each) => `${each.container} ${each.signal ?? each.code ?? "?"}`).join(", ")}</td>
                  <td><time dateTime={new Date(end.at).toISOString()}>{when(end.at)}</time></td>
                  <td>{end.grace === null ? "-" : `${end.grace} s`}</td>
                  <td>{end.gone === null ? "-" : `${seconds(end.gone)} s`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
