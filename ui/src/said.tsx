// The sentence that readers hear while the page changes: at most one a second.

import { useEffect, useRef, useState } from "preact/hooks";

const PAUSE = 1000;

/** The text as it was a second ago at the most; what came and went in between is not said. */
export function useUnhurried(text: string): string {
  const [said, say] = useState(text);
  const last = useRef(0);
  useEffect(() => {
    const timer = setTimeout(() => ((last.current = performance.now()), say(text)), Math.max(0, last.current + PAUSE - performance.now()));
    return () => clearTimeout(timer);
  }, [text]);
  return said;
}

/** `unseen` where the page shows the same elsewhere. */
export function Said({ text, unseen }: { text: string; unseen?: boolean }) {
  return <p class={unseen ? "unseen" : "said"} role="status" id="said">{useUnhurried(text)}</p>;
}

/** A sentence; what stands between backticks is code. */
export const Prose = ({ text }: { text: string }) => <>{text.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>;
