// The page's texts in the reader's language, out of the catalogue (src/lastcall/ui/catalogue, one file per language).

import { name, page } from "catalogue";
import { saved } from "./saved";

/** The code of a language: the name of its file. */
export type Language = string;

/** A text in each language. */
export type Text = Record<Language, string>;

/** The languages of the catalogue, by their codes. */
export const LANGUAGES = Object.keys(name);

export type Key = keyof (typeof page)[Language];

function chosen(): Language {
  if (saved) return saved.language;
  const kept = localStorage.getItem("lastcall-language");
  if (kept && kept in name) return kept;
  const wanted = navigator.language.toLowerCase();
  return LANGUAGES.find((each) => wanted === each || wanted.startsWith(`${each}-`)) ?? "en";
}

export let language: Language = chosen();

export function choose(other: Language): void {
  language = other;
  localStorage.setItem("lastcall-language", other);
  document.documentElement.lang = other;
}

/** The text in the reader's language; `{x}` is taken from `values`. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  return fill(pick(page)[key], values);
}

/** A time of day. */
export const clock = (at: number): string => new Date(at).toLocaleTimeString(language);

/** A text with its values. */
export const fill = (text: string, values: Record<string, string | number>): string => text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ""));

/** What there is in the reader's language, or else in English. */
export const pick = <T>(each: Record<Language, T>): T => each[language] ?? each.en!;

/** How a language calls itself. */
export const nameOf = (of: Language): string => name[of]!;
