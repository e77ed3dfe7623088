// The texts of the views that only a cluster has, in English and Japanese.

import { fill, type Key, pick, t as shared } from "./texts";

const TEXTS = {
  end: ["End this Pod", "この Pod を終了する"],
  grace: ["Grace period in seconds (empty: its own)", "猶予秒数 (空欄: Pod の設定)"],
  delete: ["Delete", "削除"],
  force: ["Delete by force", "強制削除"],
  forceSure: ["I know: its processes may still run afterwards", "プロセスが残りうることを理解しています"],
  evict: ["Evict", "退避 (evict)"],
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
  empty: ["Nothing there.", "何もありません。"],
  node: ["Node", "ノード"],
  address: ["Address", "アドレス"],
  owner: ["Owner", "所有者"],
  restarts: ["Restarts", "再起動"],
  created: ["Created", "作成"],
  labelsOf: ["Labels", "ラベル"],
  conditions: ["Conditions", "コンディション"],
  condition: ["Condition", "コンディション"],
  "col.at": ["Last seen", "最終時刻"],
  search: ["Search", "検索"],
  historyNone: ["No Pod has ended yet.", "まだ終了した Pod はありません。"],
  "col.when": ["End began", "終了開始"],
  "col.grace": ["Grace", "猶予"],
  "col.state": ["State", "状態"],
  "col.last": ["Last state", "前回の状態"],
  "col.image": ["Image", "イメージ"],
  containers: ["Containers", "コンテナー"],
} satisfies Record<string, [string, string]>;

/** As `t` of the page, of this catalogue, too. */
export function t(key: Key | keyof typeof TEXTS, values: Record<string, string | number> = {}): string {
  return key in TEXTS ? fill(pick(TEXTS[key as keyof typeof TEXTS]), values) : shared(key as Key, values);
}
