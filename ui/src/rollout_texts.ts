// The texts of the rollout's view.

import { rollout } from "catalogue";
import type { Verdict } from "./published";
import { fill, pick } from "./texts";

export type RolloutKey = keyof (typeof rollout)[string];

/** What a run found. */
export const verdict = (found: Verdict | ""): string => (found ? r(`verdict.${found}`) : "");

/** As `t`, of these. */
export function r(key: RolloutKey, values: Record<string, string | number> = {}): string {
  return fill(pick(rollout)[key], values);
}
