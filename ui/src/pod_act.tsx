// Delete, force, evict: each beside the kubectl command that does the same.

import { useState } from "preact/hooks";
import { Command } from "./command";
import { t } from "./cluster_texts";
import { ask } from "./store";
import type { Pod } from "./types";

export function commands(pod: Pod, grace: string): Record<"delete" | "force" | "evict", string> {
  const where = `pod ${pod.name} -n ${pod.namespace}`;
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name: pod.name, namespace: pod.namespace },
    ...(grace === "" ? {} : { deleteOptions: { gracePeriodSeconds: Number(grace) } }),
  };
  const path = `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}/eviction`;
  return {
    delete: `kubectl delete ${where}${grace === "" ? "" : ` --grace-period=${grace}`}`,
    force: `kubectl delete ${where} --grace-period=0 --force`,
    evict: `echo '${JSON.stringify(eviction)}' | kubectl create --raw ${path} -f -`,
  };
}

export function Act({ pod, grace, setGrace }: { pod: Pod; grace: string; setGrace: (seconds: string) => void }) {
  const [sure, setSure] = useState(false);
  const [said, setSaid] = useState("");
  const [failed, setFailed] = useState("");
  const same = commands(pod, grace);
  const run = (what: "delete" | "evict", seconds: string, told: "delete" | "evict" | "force" = what) => {
    const body = seconds === "" ? {} : { grace: Number(seconds) };
    ask(`/api/pods/${pod.uid}/${what}`, body).then(
      () => (setSaid(t("done", { what: t(told) })), setFailed("")),
      (error: Error) => (setFailed(error.message), setSaid("")),
    );
  };
  return (
    <section class="act" aria-labelledby="act">
      <h2 id="act">{t("end")}</h2>
      <label>{t("grace")}
        <input id="grace" inputMode="numeric" pattern="[0-9]*" value={grace} onInput={(event) => setGrace(event.currentTarget.value.replace(/\D/g, ""))} />
      </label>
      <div class="choice"><button id="delete" onClick={() => run("delete", grace)}>{t("delete")}</button><Command text={same.delete} /></div>
      <div class="choice"><button id="evict" onClick={() => run("evict", grace)}>{t("evict")}</button><Command text={same.evict} /></div>
      <div class="choice">
        <button id="force" class="danger" disabled={!sure} onClick={() => run("delete", "0", "force")}>{t("force")}</button><Command text={same.force} />
        <label class="check"><input type="checkbox" checked={sure} onChange={(event) => setSure(event.currentTarget.checked)} /> {t("forceSure")}</label>
      </div>
      <p role="status">{said}</p>
      <p role="alert" class="error">{failed}</p>
    </section>
  );
}
