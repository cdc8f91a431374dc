// A dialog with the beginning of a result, with syntax colours. The content comes from an untrusted file: it is only ever inserted as text.
import { bytes } from "./format.js";

const pieces = /(<!--[\s\S]*?(?:-->|$))|(<[?!][^>]*>?)|(<\/?)([^\s<>\/]+)((?:[^<>"']|"[^"]*"|'[^']*')*)(>?)|(&[#\w]+;)|([^<&]+|[\s\S])/g;
const attribute = /([^\s=]+)(\s*=\s*)("[^"]*"?|'[^']*'?)|([\s\S])/g;

/** highlight returns XML as coloured text. */
export function highlight(xml) {
  const out = document.createDocumentFragment();
  const add = (kind, text) => {
    if (!text) return;
    if (!kind) return out.append(text);
    const span = document.createElement("span");
    span.className = `x-${kind}`;
    span.textContent = text;
    out.append(span);
  };
  for (const [, comment, head, open, name, rest, close, entity, text] of xml.matchAll(pieces)) {
    add("comment", comment);
    add("head", head);
    add("mark", open);
    add("name", name);
    for (const [, key, equals, value, other] of (rest || "").matchAll(attribute)) {
      add("key", key);
      add("mark", equals);
      add("value", value);
      add("", other);
    }
    add("mark", close);
    add("entity", entity);
    add("", text);
  }
  return out;
}

/** show opens the dialog for a job. */
export async function show(job, opener) {
  const dialog = document.getElementById("preview");
  const note = dialog.querySelector('[data-part="note"]');
  const code = dialog.querySelector("code");
  dialog.querySelector('[data-part="title"]').textContent = job.filename;
  dialog.querySelector('[data-part="save"]').href = job.download_url;
  note.textContent = "Loading the result.";
  code.replaceChildren();
  dialog.addEventListener("close", () => opener.focus(), { once: true });
  dialog.showModal();
  try {
    const answer = await fetch(`/api/jobs/${job.id}/preview`);
    if (!answer.ok) throw new Error((await answer.json()).error_message);
    const text = await answer.text();
    code.replaceChildren(highlight(text));
    const whole = job.result_bytes === null || job.result_bytes <= 64 * 1024;
    note.textContent = whole ? `The whole result, ${bytes(job.result_bytes ?? text.length)}.` : `The first 64 KB of ${bytes(job.result_bytes)}. Download it to see the rest.`;
  } catch (problem) {
    note.textContent = problem instanceof TypeError ? "The server cannot be reached. Please close this preview and try again in a moment." : problem.message;
  }
}
