// Every text of the page, in English and Japanese. What the cluster's records say comes from lastcall, in English.

import { saved } from "./saved";

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
  missed: [
    "From {a} to {b} steps are missing: the page could not follow. What is shown is the present state.",
    "{a} から {b} までの経過は欠けています。ページが追いつけなかったためです。表示は現在の状態です。",
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
  workloads: ["Workloads", "ワークロード"],
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
  restarted: ["restarts: {n}", "再起動: {n}"],
  terminating: ["terminating", "終了処理中"],
  left: ["{s} s of grace left", "猶予 残り {s} 秒"],
  graceOver: ["grace period over", "猶予時間切れ"],
  "stage.deleted": ["DELETE accepted", "DELETE 受理"],
  "stage.unseen": ["watched since {t}", "{t} から監視"],
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
  who: ["Who", "主体"],
  what: ["What", "内容"],
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
  stretch: ["stretched where much happens", "変化の多い所を広げる"],
  toEnd: ["Show the end", "最後を表示"],
  before: ["Previous record", "前の記録"],
  after: ["Next record", "次の記録"],
  zoomIn: ["Zoom in", "拡大"],
  zoomOut: ["Zoom out", "縮小"],
  fit: ["Fit", "全体"],
  walkHelp: ["In the picture: ← → records, + − zoom, drag along the time axis.", "図の中では ← → で記録、+ − で拡大縮小、時間軸のドラッグで時点。"],
  "bar.running": ["running", "実行中"],
  "bar.preStop": ["preStop hook", "preStop フック"],
  "bar.waiting": ["waits for its turn", "順番待ち"],
  "bar.drain": ["stop signal to exit", "停止シグナルから終了まで"],
  "bar.overrun": ["over the grace period", "猶予時間を超過"],
  "bar.ready": ["endpoint ready", "エンドポイント ready"],
  "bar.serving": ["serving while terminating", "終了処理中も応答"],
  "bar.terminating": ["terminating, not serving", "終了処理中、応答なし"],
  endedTitle: ["How the containers ended", "コンテナーの終わり方"],
  "col.ended": ["Ended with", "終わり方"],
  "col.after": ["After its stop signal", "停止シグナルから"],
  "col.hook": ["preStop hook", "preStop フック"],
  factsOf: ["Facts", "記録された値"],
  causes: ["Cause and effect", "原因と結果"],
  effects: ["led to step", "結果: 段階"],
  evidenceHelp: [
    "Every record was observed by the process that wrote it, unless it says inferred (concluded from something else) or predicted (simulated).",
    "記録は、推定 (ほかの記録からの結論) または予測 (シミュレーション) と書かれていない限り、書いたプロセス自身が観測したものです。",
  ],
  scaleOf: ["0 to {s} s, true to scale", "0 から {s} 秒 (等間隔)"],
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
  copy: ["Copy", "コピー"],
  copied: ["Copied", "コピーしました"],
  container: ["Container", "コンテナー"],
  "col.pod": ["Pod", "Pod"],
  "col.gone": ["Gone after", "消滅まで"],
  "col.how": ["How it ended", "終わり方"],
  "col.exits": ["Exits", "終了コード"],
  phase: ["Phase", "フェーズ"],
  keys: ["Keys: arrows move between cells, o overview, e ends, t tour, space pauses, / filters", "キー: 矢印でセル移動、o 概要、e 終了、t ツアー、空白で一時停止、/ で絞り込み"],
  rollout: ["Rollout", "ロールアウト"],
  tour: ["Tour", "ツアー"],
} satisfies Record<string, [string, string]>;

export type Key = keyof typeof TEXTS;

function chosen(): Language {
  if (saved) return saved.language;
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
  return fill(pick(TEXTS[key]), values);
}

/** A time of day. */
export const clock = (at: number): string => new Date(at).toLocaleTimeString(language);

/** A text with its values. */
export const fill = (text: string, values: Record<string, string | number>): string => text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ""));

/** Of a pair that stands elsewhere in the catalogue. */
export const pick = (pair: readonly [string, string]): string => pair[language === "ja" ? 1 : 0];
