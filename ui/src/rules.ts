// What the rules of the tour's steps say, where no server tells it.

import { pick, type Text } from "./texts";
import rules from "./tour-rules.json";

const RULES: Record<string, Text> = rules;

/** What a rule says, in the reader's language; "" for one of no step of the tour. */
export function explained(rule: string): string {
  const [path = "", name = ""] = rule.split(":");
  const found = RULES[`${path.split("/").pop()}:${name}`];
  return found ? pick(found) : "";
}

/** Where a rule stands in Kubernetes's source; "" for a rule of something else. Opened by a click only. */
export function sourceOf(rule: string, version: string): string {
  const [path = ""] = rule.split(":");
  if (!/^(pkg|staging|plugin|cmd)\//.test(path)) return "";
  return `https://github.com/kubernetes/kubernetes/blob/v${version.split(".").slice(0, 2).join(".") || "1.36"}.0/${path}`;
}
