// The same Pod under several versions of Kubernetes, one row for each.

import { Textures, seconds } from "./lanes";
import { pick, t } from "./texts";
import { VERSIONS, type OfVersion, w } from "./tour-data";

const WIDTH = 320;

export function Versions({ found }: { found: Record<string, OfVersion> }) {
  const newest = found[VERSIONS[VERSIONS.length - 1]!]!;
  const to = Math.max(1, ...VERSIONS.map((each) => Math.max(found[each]?.exit ?? 0, found[each]?.gone ?? 0))) * 1.08;
  const x = (at: number) => (at / to) * WIDTH;
  const cell = (of: OfVersion, what: "term" | "kill" | "gone") => {
    const [value, wanted] = [of[what], newest[what]];
    const text = typeof value === "number" ? `${seconds(value)} s` : "-";
    return <td>{value === wanted ? text : <b class="differs">{text}</b>}</td>;
  };
  return (
    <div>
      <h2 id="versions">{w("versions")}</h2>
      <p class="hint">{w("versionsHelp")}</p>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="versions">
        <table class="versions">
          <thead><tr>
            <th scope="col">Kubernetes</th><th scope="col">{w("bar")}</th><th scope="col">SIGTERM</th><th scope="col">SIGKILL</th>
            <th scope="col">{t("col.exits")}</th><th scope="col">{t("phase")}</th><th scope="col">{t("col.gone")}</th>
          </tr></thead>
          <tbody>
            {VERSIONS.map((version) => {
              const of = found[version] ?? {};
              if (of.error) return <tr key={version}><th scope="row">{version}</th><td colSpan={6}><b class="differs">{pick(of.error)}</b></td></tr>;
              const [term, end] = [of.term ?? 0, of.exit ?? 0];
              return (
                <tr key={version}>
                  <th scope="row">{version}</th>
                  <td>
                    <svg class="strip" viewBox={`0 0 ${WIDTH} 20`} width={WIDTH} height="20" role="img" aria-label={strip(of)}>
                      <defs><Textures /></defs>
                      <line class="track" x1="0" x2={WIDTH} y1="10" y2="10" />
                      {of.hook && <rect class="bar b-preStop" x={x(of.hook[0])} width={x(of.hook[1] - of.hook[0])} y="3" height="14" rx="2" />}
                      {of.hook && <rect class="texture" fill="url(#t-hook)" x={x(of.hook[0])} width={x(of.hook[1] - of.hook[0])} y="3" height="14" />}
                      <rect class="bar b-drain" x={x(term)} width={Math.max(1, x(end - term))} y="3" height="14" rx="2" />
                      <rect class="texture" fill="url(#t-drain)" x={x(term)} width={Math.max(1, x(end - term))} y="3" height="14" />
                      <path class="signal" d="M0 -7 L6 5 L-6 5 Z" transform={`translate(${x(term) + 6} 10)`} />
                      {typeof of.kill === "number" && <path class="kill" d="M-5 -5 L5 5 M5 -5 L-5 5" transform={`translate(${x(of.kill)} 10)`} />}
                    </svg>
                  </td>
                  {cell(of, "term")}{cell(of, "kill")}
                  <td>{of.code === newest.code ? of.code : <b class="differs">{of.code}</b>}</td>
                  <td>{of.phase === newest.phase ? of.phase : <b class="differs">{of.phase}</b>}</td>
                  {cell(of, "gone")}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function strip(of: OfVersion): string {
  const parts = [of.hook ? `preStop ${of.hook[0]} s - ${of.hook[1]} s` : "", `SIGTERM ${of.term ?? "-"} s`, typeof of.kill === "number" ? `SIGKILL ${of.kill} s` : ""];
  return parts.filter(Boolean).join(", ");
}
