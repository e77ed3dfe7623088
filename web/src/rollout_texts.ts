// The texts of the rollout's view, in English and Japanese.

import type { Verdict } from "./published";
import { fill, pick } from "./texts";

const TEXTS = {
  title: ["Rollout", "ロールアウト"],
  none: ["No experiment has begun yet.", "まだ実験は始まっていません。"],
  running: ["The experiment runs", "実験中"],
  run: ["Run {n}", "実行 {n}"],
  runOf: ["Run {n} of {of}", "実行 {n} / {of}"],
  "why.asked": ["as asked", "指定どおり"],
  "why.advice": ["with the advice applied", "助言を適用"],
  "why.search": ["the search for what is safe", "安全な範囲の探索"],
  "why.page": ["asked for on this page", "このページから"],
  "col.asked": ["Why", "目的"],
  "verdict.nothing lost": ["nothing lost", "損失なし"],
  "verdict.requests lost": ["requests lost", "損失あり"],
  "verdict.inconclusive": ["inconclusive", "判定不能"],
  there: ["On the cluster of context {c}", "コンテキスト {c} のクラスター"],
  thereHelp: [
    "This page changes nothing there, and how its Pods end is known within bounds only: too little to predict by. This command takes the workload to a cluster of lastcall, where the page predicts:",
    "このページはそのクラスターを変更しません。Pod の終わり方は範囲でしか分からず、予測には足りません。次のコマンドはワークロードを lastcall のクラスターに移し、そこでは予測できます。",
  ],
  thereAgain: ["Run it again (the terminal may ask first)", "もう一度実行 (端末で確認される場合があります)"],
  search: ["How much delay is safe?", "どれだけの遅延まで安全か"],
  searching: ["Searching: runs on the kernel below and above the predicted edge.", "探索中: 予測した境界の上下で実際に実行しています。"],
  "edge.lag": ["Endpoint lag (s)", "エンドポイント反映の遅れ (秒)"],
  "edge.sleep": ["preStop sleep (s), for a delay of {d} s", "preStop スリープ (秒)、遅延 {d} 秒のとき"],
  "edge.predicted": ["predicted edge: {s} s", "予測した境界: {s} 秒"],
  "edge.nonePredicted": ["predicted: none is safe", "予測: 安全な値はない"],
  "edge.safe": ["run that lost nothing", "損失のない実行"],
  "edge.lossy": ["run that lost requests", "損失のあった実行"],
  "col.value": ["Seconds", "秒"],
  "col.found": ["Lost of all requests", "損失 / 全リクエスト"],
  to: ["Requests to Service {s}, from the {f}; {d} under load", "Service {s} へのリクエスト (送信元: {f})、負荷をかけて {d}"],
  picture: ["Requests over the ends of the Pods", "リクエストと Pod の終了"],
  pictureHelp: [
    "Seconds since the disruption began. Columns are requests by the time they were sent: those that were lost are red and crossed, with a triangle below. A Pod's bar is what it does, the thin one below says how long new connections are sent to it.",
    "中断開始からの秒数。縦棒は送信時刻ごとのリクエスト数で、失われたものは赤い網掛けで、下に三角が付きます。Pod の帯は状態、その下の細い帯は新しい接続が送られる期間です。",
  ],
  requests: ["{k} requests", "{k} リクエスト"],
  answered: ["answered", "応答あり"],
  moved: ["carried on elsewhere", "別の接続で継続"],
  lost: ["lost", "失われた"],
  ready: ["ready", "準備完了"],
  hook: ["preStop hook", "preStop フック"],
  drain: ["stop signal to exit", "停止シグナルから終了まで"],
  routed: ["gets new connections", "新しい接続が届く"],
  nowhere: ["no Pod, or not known", "Pod なし、または不明"],
  lostOf: ["{l} of {n} requests lost", "{n} 件中 {l} 件が失われた"],
  control: [
    "The columns also have {n} requests that had ended before 0 s, where counting begins.",
    "縦棒にはほかに、0 秒より前に終わった {n} 件も含まれます。集計は 0 秒からです。",
  ],
  unmeasured: [
    "{n} more do not count: the client itself was held up.",
    "ほかに {n} 件は、送信側自体が止まっていたため集計に含みません。",
  ],
  controlLost: ["{l} lost before the disruption", "中断前に {l} 件が失われた"],
  causes: ["Why they were lost", "失われた理由"],
  "col.count": ["Lost", "件数"],
  "col.atMost": ["At most (95 %)", "最大 (95 %)"],
  "col.kind": ["Kind of request", "リクエストの種類"],
  ends: ["How the old Pods ended", "古い Pod の終わり方"],
  latency: ["{k} answers took", "{k} の応答時間"],
  latencyWords: ["median {m}, at most {x}", "中央値 {m}、最大 {x}"],
  messages: ["{n} messages", "メッセージ {n}"],
  "col.how": ["How", "どのように"],
  "col.why": ["Why", "理由"],
  whatIf: ["What if", "もし設定が違ったら"],
  whatIfHelp: [
    "Drag: a cluster in virtual time plays the rollout with these values, with Pods that end as these were measured to end. It predicts what can be lost, not how many; the kernel decides.",
    "動かすと、仮想時間のクラスターがこの値でロールアウトを再現します。Pod の終わり方は実測値です。予測するのは失われうるものであって件数ではなく、実際の結果は実行で確かめます。",
  ],
  notYet: ["Predictions begin when the first Pod has ended: how it ends is measured.", "最初の Pod の終わり方を測定してから予測できます。"],
  sleep: ["preStop sleep (s)", "preStop スリープ (秒)"],
  noSleep: ["The preStop hook does something else than wait: it is not replaced here.", "preStop フックは待つ以外のこともするため、ここでは置き換えません。"],
  grace: ["Grace period (s)", "猶予期間 (秒)"],
  maxUnavailable: ["maxUnavailable (Pods)", "maxUnavailable (Pod 数)"],
  "hop.controller": ["Delay: EndpointSlice is written (s)", "遅延: EndpointSlice の書き込み (秒)"],
  "hop.watch": ["Delay: node sees it (s)", "遅延: ノードへの通知 (秒)"],
  "hop.kernel": ["Delay: rules change (s)", "遅延: ルールの変更 (秒)"],
  "hop.balancer": ["Delay: load balancer stops sending (s)", "遅延: ロードバランサーの反映 (秒)"],
  reset: ["As it was run", "実行時の値に戻す"],
  foretold: ["Predicted", "予測"],
  predicting: ["predicting…", "予測中…"],
  predicted: ["{k}: {l} of {n} simulated requests lost.", "{k}: 模擬リクエスト {n} 件中 {l} 件が失われる。"],
  predictedNone: ["{k}: none of {n} simulated requests lost.", "{k}: 模擬リクエスト {n} 件中、失われるものはない。"],
  edge: ["Safe up to a delay of {e} s ({h}).", "{e} 秒の遅延まで安全 ({h})。"],
  noEdge: ["Some can be lost whatever the delay ({h}).", "遅延がなくても失われうる ({h})。"],
  "by.rule": ["by a rule", "規則による"],
  "by.virtual time": ["in virtual time", "仮想時間による"],
  predictedPicture: ["What it would look like (predicted)", "予想される様子 (予測)"],
  again: ["Run again with these values", "この値で再実行"],
  patch: ["The patch that would mend it", "修正するパッチ"],
  patchOf: ["As a patch", "パッチとして"],
  apply: ["Apply it and run again", "適用して再実行"],
  asked: ["Asked for: the next run begins.", "依頼しました。次の実行が始まります。"],
  runs: ["Runs", "実行一覧"],
  "col.run": ["Run", "実行"],
  "col.delay": ["Delays", "遅延"],
  "col.verdict": ["Verdict", "判定"],
} satisfies Record<string, [string, string]>;

export type RolloutKey = keyof typeof TEXTS;

/** What a run found. */
export const verdict = (found: Verdict | ""): string => (found ? r(`verdict.${found}`) : "");

/** As `t`, of this catalogue. */
export function r(key: RolloutKey, values: Record<string, string | number> = {}): string {
  return fill(pick(TEXTS[key]), values);
}
