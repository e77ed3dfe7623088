// The data of a page that was saved: a block of JSON in the file itself (src/lastcall/ui/saved.py).

import type { Report, Rollout } from "./rollout_types";
import type { Language } from "./texts";
import type { End, Story } from "./types";

export interface Saved {
  language: Language;
  title: string;
  about: string;
  error: string;
  caption: string;
  stories: Story[];
  ends: Record<string, End>;
  rollout?: Rollout;
  /** Of a rollout: its experiments, and what the limits say of them. */
  reports?: Report[];
  limits?: string[];
}

const block = document.getElementById("saved");

export const saved = block && (JSON.parse(block.textContent ?? "") as Saved);
