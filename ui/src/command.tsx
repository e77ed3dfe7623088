// A command to copy.

import { useState } from "preact/hooks";
import { t } from "./texts";

export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <div class="command">
      <code>{text}</code>
      <button class="link" onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}>{copied ? t("copied") : t("copy")}</button>
    </div>
  );
}
