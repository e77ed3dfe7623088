// The texts of the views that only a cluster has.

import { cluster } from "catalogue";
import { fill, type Key, pick, t as shared } from "./texts";

type Own = keyof (typeof cluster)[string];

/** As `t` of the page, of these, too. */
export function t(key: Key | Own, values: Record<string, string | number> = {}): string {
  const own = pick(cluster);
  return key in own ? fill(own[key as Own], values) : shared(key as Key, values);
}
