// One job as one row. The markup comes from the server's own template, and whatever a file is called or said about it goes in as text.
import { age, bytes, until } from "./words.js";

const words = { queued: "Queued", processing: "Processing", complete: "Complete", failed: "Failed", cancelled: "Cancelled", expired: "Expired" };

/** gone tells whether a file was there once and is no more. */
const gone = (standing) => standing === "expired" || standing === "missing";

/** state is what the badge says: a result that is gone is not complete to anybody who wants it. */
export function state(job) {
  return job.status === "complete" && gone(job.result) ? "expired" : job.status;
}

/** line is the one sentence under a name. */
export function line(job, expired) {
  if (state(job) === "expired") return expired;
  const said = job.error_message || "";
  if (job.status === "failed") {
    // Nobody retries what has failed for good, so it is not promised.
    const kept = said.replace(/ We’ll retry[^.]*\.$/, "");
    return job.can_retry ? `${kept} Retry starts it again.`.trim() : kept;
  }
  if (job.status === "queued" && job.held) return said ? said : "Waits until the converter is back.";
  return job.status === "queued" ? said : "";
}

/** attempts says what was tried, and when it is tried next. */
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

/** make copies the server's row for one more job. */
export function make() {
  return document.getElementById("row").content.firstElementChild.cloneNode(true);
}

function put(row, part, text) {
  const element = row.querySelector(`[data-part="${part}"]`);
  if (element.textContent !== text) element.textContent = text;
  element.hidden = text === "";
}

/** paint brings a row up to date without replacing anything, so that who stands on it stays there. */
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
  act(row, job);
}

/** tick moves what moves by itself. */
export function tick(row, job, now = Date.now()) {
  put(row, "age", age(job.created_at, now));
  put(row, "attempts", attempts(job, now));
}

/** act offers what can be done with a job, and says why not. */
function act(row, job) {
  const there = job.status === "complete" && job.result === "available";
  const download = row.querySelector('[data-part="download"]');
  const preview = row.querySelector('[data-part="preview"]');
  download.hidden = preview.hidden = !there;
  download.href = there ? job.download_url : "#";
  preview.href = there ? `/api/jobs/${job.id}/preview` : "#";

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
