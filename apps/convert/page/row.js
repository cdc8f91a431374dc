// One job as one row. The markup comes from the server's template; file names and messages are inserted as text.
import { age, bytes, until } from "./format.js";

const words = { queued: "Queued", processing: "Processing", complete: "Complete", failed: "Failed", cancelled: "Cancelled", expired: "Expired" };

/** gone reports whether a file existed and was deleted. */
const gone = (fileState) => fileState === "expired" || fileState === "missing";

/** state returns the state on the badge: a complete job whose result was deleted is shown as expired. */
export function state(job) {
  return job.status === "complete" && gone(job.result) ? "expired" : job.status;
}

/** line returns the message under a file name. */
export function line(job, expired) {
  if (state(job) === "expired") return expired;
  const message = job.error_message || "";
  if (job.status === "failed") {
    // A failed job is not retried automatically: remove the promise.
    const kept = message.replace(/ We’ll retry[^.]*\.$/, "");
    return job.can_retry ? `${kept} Choose Retry to try again.`.trim() : kept;
  }
  if (job.status === "queued" && job.held) return message ? message : "Waiting until the converter is available again.";
  return job.status === "queued" ? message : "";
}

/** attempts describes the attempts so far and when the next one is. */
export function attempts(job, now = Date.now()) {
  const { status, attempt_count: made } = job;
  if (status === "failed") return made === 0 ? "" : made === 1 ? "Tried once." : `Tried ${made} times.`;
  if (status === "processing") return made > 1 ? `Attempt ${made} of ${job.max_attempts}` : "";
  if (status !== "queued" || made === 0) return "";
  const tried = `Tried ${made} of ${job.max_attempts} times`;
  if (job.held || !job.retry_after) return tried;
  const wait = until(job.retry_after, now);
  return wait ? `${tried}, next attempt in ${wait}` : `${tried}, next attempt any moment`;
}

/** make returns a new, empty row from the server's template. */
export function make() {
  return document.getElementById("row").content.firstElementChild.cloneNode(true);
}

function put(row, part, text) {
  const element = row.querySelector(`[data-part="${part}"]`);
  if (element.textContent !== text) element.textContent = text;
  element.hidden = text === "";
}

/** paint updates a row without replacing elements, so that the keyboard focus stays where it is. */
export function paint(row, job, expired) {
  row.id = `job-${job.id}`;
  row.dataset.id = job.id;
  row.dataset.state = state(job);
  put(row, "name", job.filename);
  put(row, "mapping", job.mapping);
  put(row, "size", bytes(job.bytes));
  put(row, "word", words[state(job)]);
  put(row, "line", line(job, expired));
  row.querySelector("use").setAttribute("href", `#shape-${state(job)}`);
  row.querySelector('[data-part="tag"]').hidden = !(job.status === "failed" && gone(job.source));
  for (const of of row.querySelectorAll('[data-part="of"]')) of.textContent = job.filename;
  const when = row.querySelector("time");
  when.dateTime = job.created_at;
  tick(row, job);
  paintActions(row, job);
}

/** tick updates the texts that depend on the time. */
export function tick(row, job, now = Date.now()) {
  put(row, "age", age(job.created_at, now));
  put(row, "attempts", attempts(job, now));
}

/** paintActions shows the actions that are possible for a job, and why Retry is not. */
function paintActions(row, job) {
  const available = job.status === "complete" && job.result === "available";
  const download = row.querySelector('[data-part="download"]');
  const preview = row.querySelector('[data-part="preview"]');
  download.hidden = preview.hidden = !available;
  download.href = available ? job.download_url : "#";
  preview.href = available ? `/api/jobs/${job.id}/preview` : "#";

  const form = row.querySelector('[data-part="retry"]');
  const button = form.querySelector("button");
  form.hidden = job.status !== "failed" || (job.source === "none" && !job.can_retry);
  form.action = `/jobs/${job.id}/retry`;
  button.disabled = !job.can_retry;
  const hint = form.hidden || job.can_retry ? "" : job.retry_hint || "";
  put(row, "hint", hint);
  row.querySelector('[data-part="hint"]').id = `hint-${job.id}`;
  if (hint) button.setAttribute("aria-describedby", `hint-${job.id}`);
  else button.removeAttribute("aria-describedby");
}
