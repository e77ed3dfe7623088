// Every text of the page, in English and Japanese. What the cluster's records say comes from lastcall, in English.

export type Language = "en" | "ja";

const TEXTS = {
  overview: ["Overview", "概要"],
  history: ["Ends", "終了の記録"],
  skip: ["Skip to content", "本文へ"],
  language: ["日本語", "English"],
  running: ["live", "ライブ"],
  connecting: ["connecting…", "接続中…"],
  away: ["The cluster is not running. The page waits for it.", "クラスターは停止中です。起動を待っています。"],
  lost: [
    "The page has lost its server: is lastcall ui still running? It tries again.",
    "サーバーに接続できません。lastcall ui は動いていますか?再接続しています。",
  ],
  closedTitle: ["This page needs its link", "このページにはリンクが必要です"],
  closedText: [
    "Each link lets one browser in, once, within 60 s. Open the newest link in lastcall's terminal, or start lastcall ui.",
    "リンクは 60 秒以内に一つのブラウザーで一度だけ使えます。端末に表示された最新のリンクを開くか、lastcall ui を実行してください。",
  ],
  over: ["ended", "終了"],
  clusterEnded: [
    "The cluster has ended, and so has this page's server. What was seen stays here to be looked at.",
    "クラスターは終了し、このページのサーバーも終了しました。見えていたものはここに残ります。",
  ],
  pageEnded: [
    "lastcall ui has ended; the cluster runs on. What was seen stays here. Start lastcall ui again for what comes.",
    "lastcall ui は終了しました。クラスターは動き続けています。見えていたものはここに残ります。続きは lastcall ui を再度実行してください。",
  ],
  traceEnded: [
    "The trace has ended. What was seen stays here to be looked at.",
    "トレースは終了しました。見えていたものはここに残ります。",
  ],
  experimentEnded: [
    "The command has ended; the cluster runs on. What was seen stays here to be looked at.",
    "コマンドは終了しました。クラスターは動き続けています。見えていたものはここに残ります。",
  ],
  labels: ["Labels (as kubectl -l)", "ラベル (kubectl -l と同じ書式)"],
  labelsHint: ["app=web,tier in (a,b)", "app=web,tier in (a,b)"],
  name: ["Name contains", "名前に含む文字"],
  namespaceOf: ["Namespace (as kubectl -n)", "名前空間 (kubectl -n と同じ)"],
  allNamespaces: ["all", "すべて"],
  group: ["Group by", "分類"],
  byNode: ["node", "ノード"],
  byNamespace: ["namespace", "名前空間"],
  byWorkload: ["workload", "ワークロード"],
  nodes: ["Nodes", "ノード"],
  workloads: ["Workloads", "ワークロード"],
  pods: ["Pods", "Pod"],
  nobody: ["no owner", "所有者なし"],
  noNode: ["not scheduled", "未割り当て"],
  none: ["No Pods. Create one with kubectl: it appears here.", "Pod はありません。kubectl で作ると、ここに現れます。"],
  noPods: ["No Pods.", "Pod はありません。"],
  noneSelected: ["No Pod matches the filter.", "条件に合う Pod はありません。"],
  ready: ["ready", "準備完了"],
  notReady: ["not ready", "準備未完了"],
  pending: ["pending", "待機中"],
  failed: ["failed", "失敗"],
  succeeded: ["succeeded", "成功"],
  terminating: ["terminating", "終了処理中"],
  left: ["{s} s of grace left", "猶予 残り {s} 秒"],
  graceOver: ["grace period over", "猶予時間切れ"],
  "stage.deleted": ["DELETE accepted", "DELETE 受理"],
  "stage.hook": ["preStop hook", "preStop フック"],
  "stage.term": ["stop signal sent", "停止シグナル送信"],
  "stage.kill": ["SIGKILL sent", "SIGKILL 送信"],
  "stage.cleanup": ["cleaning up", "後片付け"],
  "stage.held": ["held by finalizers", "finalizer が保持"],
  legend: ["What the cells mean", "凡例"],
  ofJob: ["{r} of {n} completed", "{n} 中 {r} 完了"],
  jobDone: ["{r} completed", "{r} 完了"],
  activeJobs: ["{n} active", "実行中 {n}"],
  suspended: ["suspended", "一時停止"],
  ofNodes: ["{r} of {n} ready", "{n} 中 {r} 準備完了"],
  back: ["All Pods", "Pod 一覧"],
  gone: ["gone", "削除済み"],
  pause: ["Pause", "一時停止"],
  live: ["Live", "ライブ"],
  play: ["Play", "再生"],
  speed: ["Speed", "速度"],
  moment: ["Moment", "時点"],
  link: ["Link to this moment", "この時点へのリンク"],
  export: ["Save as a page", "ページとして保存"],
  picture: ["Who did what when", "誰が、いつ、何をしたか"],
  "since.delete": ["Seconds since the DELETE.", "DELETE からの秒数。"],
  "since.end": ["Seconds since the kubelet began to end the Pod.", "kubelet が Pod の終了を始めてからの秒数。"],
  "since.first": ["Seconds since the first record of the Pod.", "Pod の最初の記録からの秒数。"],
  pictureHelp: [
    "Solid is what happened; dashed is predicted. Choose a step below to see its causes.",
    "実線は起きたこと、破線は予測です。下の段階を選ぶと原因が矢印で示されます。",
  ],
  next: ["What comes next (predicted)", "これから起きること (予測)"],
  nothingNext: ["Nothing is to come.", "これから起きることはありません。"],
  steps: ["Steps", "段階"],
  details: ["with details", "詳細も表示"],
  meaning: ["What it is", "意味"],
  rule: ["The rule", "規則"],
  source: ["source", "ソース"],
  cause: ["caused by step {n}", "原因: 段階 {n}"],
  "evidence.inferred": ["inferred", "推定"],
  "evidence.predicted": ["predicted", "予測"],
  findings: ["Findings", "気づいた点"],
  notKnown: ["What is not known", "わかっていないこと"],
  "severity.info": ["Note", "注記"],
  "severity.warning": ["Warning", "警告"],
  "severity.problem": ["Problem", "問題"],
  outputTitle: ["Output", "出力"],
  waiting: ["No records about this Pod yet.", "この Pod の記録はまだありません。"],
  ifDeleted: ["If it were deleted now", "いま削除したら"],
  ifDeletedWith: ["If it were deleted now, with a grace period of {s} s", "いま猶予 {s} 秒で削除したら"],
  "next.hook": ["{c}: preStop {d} starts", "{c}: preStop {d} 開始"],
  "next.term": ["{c}: stop signal {d}", "{c}: 停止シグナル {d}"],
  stopSignal: ["stop signal", "停止シグナル"],
  "next.kill": ["{c}: SIGKILL, if it still runs", "{c}: まだ動いていれば SIGKILL"],
  "next.gone": ["the object is removed", "オブジェクト削除"],
  "next.held": ["the object stays until its finalizers are removed: {d}", "finalizer が外れるまで残る: {d}"],
  at: ["at {a} s", "{a} 秒"],
  between: ["between {a} s and {b} s", "{a} 秒から {b} 秒の間"],
  from: ["from {a} s on", "{a} 秒以降"],
  end: ["End this Pod", "この Pod を終了する"],
  grace: ["Grace period in seconds (empty: its own)", "猶予秒数 (空欄: Pod の設定)"],
  delete: ["Delete", "削除"],
  force: ["Delete by force", "強制削除"],
  forceSure: ["I know: its processes may still run afterwards", "プロセスが残りうることを理解しています"],
  evict: ["Evict", "退避 (evict)"],
  same: ["The same with kubectl", "kubectl での同じ操作"],
  copy: ["Copy", "コピー"],
  copied: ["Copied", "コピーしました"],
  done: ["Accepted: {what}", "受理されました: {what}"],
  describe: ["Describe", "詳細"],
  events: ["Events", "イベント"],
  yaml: ["YAML", "YAML"],
  logs: ["Logs", "ログ"],
  terminal: ["Terminal", "端末"],
  terminalHelp: [
    "A shell (sh) in the container, without a TTY: write a line and press Enter.",
    "コンテナー内のシェル (sh、TTY なし)。1 行書いて Enter。",
  ],
  connect: ["Start a shell", "シェルを開始"],
  closed: ["The shell has ended.", "シェルは終了しました。"],
  line: ["Command line", "コマンド行"],
  previous: ["the run before", "前回の実行"],
  container: ["Container", "コンテナー"],
  refresh: ["Refresh", "更新"],
  empty: ["Nothing there.", "何もありません。"],
  search: ["Search", "検索"],
  historyNone: ["No Pod has ended yet.", "まだ終了した Pod はありません。"],
  "col.pod": ["Pod", "Pod"],
  "col.when": ["End began", "終了開始"],
  "col.grace": ["Grace", "猶予"],
  "col.gone": ["Gone after", "消滅まで"],
  "col.how": ["How it ended", "終わり方"],
  "col.exits": ["Exits", "終了コード"],
  phase: ["Phase", "フェーズ"],
  node: ["Node", "ノード"],
  address: ["Address", "アドレス"],
  owner: ["Owner", "所有者"],
  restarts: ["Restarts", "再起動"],
  created: ["Created", "作成"],
  labelsOf: ["Labels", "ラベル"],
  containers: ["Containers", "コンテナー"],
  conditions: ["Conditions", "コンディション"],
  condition: ["Condition", "コンディション"],
  "col.at": ["Last seen", "最終時刻"],
  "col.state": ["State", "状態"],
  "col.last": ["Last state", "前回の状態"],
  "col.image": ["Image", "イメージ"],
  keys: ["Keys: arrows move between cells, o overview, e ends, t tour, space pauses, / filters", "キー: 矢印でセル移動、o 概要、e 終了、t ツアー、空白で一時停止、/ で絞り込み"],
  rollout: ["Rollout", "ロールアウト"],
  tour: ["Tour", "ツアー"],
} satisfies Record<string, [string, string]>;

export type Key = keyof typeof TEXTS;

function chosen(): Language {
  const kept = localStorage.getItem("lastcall-language");
  if (kept === "en" || kept === "ja") return kept;
  return navigator.language.toLowerCase().startsWith("ja") ? "ja" : "en";
}

export let language: Language = chosen();

export function choose(other: Language): void {
  language = other;
  localStorage.setItem("lastcall-language", other);
  document.documentElement.lang = other;
}

/** The text in the reader's language; `{x}` is taken from `values`. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const text = TEXTS[key][language === "ja" ? 1 : 0];
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ""));
}

/** Of a pair that stands elsewhere in the catalogue. */
export const pick = (pair: readonly [string, string]): string => pair[language === "ja" ? 1 : 0];
