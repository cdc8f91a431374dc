// The queue page. The server renders the first rows; this script keeps them up to date.
import { follow, watch } from "./live.js";
import { show } from "./preview.js";
import { make, paint, state, tick } from "./row.js";
import { begin } from "./upload.js";
import { files } from "./format.js";

const $ = (id) => document.getElementById(id);
const jobs = new Map(); // by id
const rows = new Map(); // by id
const expired = document.body.dataset.expired;
const page = 50;
let cursor = null; // of the next older jobs; null when all are shown
let dirty = new Set();
let flushing = false;
let ask = () => {};

/** say announces a change to screen readers. More than three changes within 400 ms become one announcement. */
let pending = [];
function say(text) {
  pending.push(text);
  if (pending.length > 1) return;
  setTimeout(() => {
    $("announcement").textContent = pending.length > 3 ? `${pending.length} changes. The last: ${pending.at(-1)}` : pending.join(" ");
    pending = [];
  }, 400);
}

/** call sends a request to the API. It throws an error with a message for the user, which also has the status, or unreachable if there was no answer. */
async function call(path, options) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, ...options }).catch(() => {
    throw Object.assign(new Error("The server cannot be reached. Please try again in a moment."), { unreachable: true });
  });
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw Object.assign(new Error(body?.error_message || "The server could not answer. Please try again in a moment."), { status: answer.status });
  return body;
}

/** showReachable shows or hides the banner that the server cannot be reached. */
function showReachable(problem) {
  $("unreachable").hidden = !(problem?.unreachable || problem?.status >= 500);
  if (problem && !problem.unreachable && !problem.status) console.error(problem); // a defect in this script
}

/** put shows a job in its place: newest first. */
function put(job) {
  const before = jobs.get(job.id);
  jobs.set(job.id, job);
  let row = rows.get(job.id);
  if (!row) {
    row = document.getElementById(`job-${job.id}`) ?? make();
    rows.set(job.id, row);
  }
  paint(row, job, expired);
  if (!row.isConnected) {
    const later = [...$("jobs").children].find((other) => older(jobs.get(other.dataset.id), job));
    $("jobs").insertBefore(row, later ?? null);
  }
  if (before && state(before) !== state(job)) say(`${job.filename}: ${state(job)}.`);
}

function older(a, b) {
  if (!a) return false;
  return a.created_at === b.created_at ? a.id < b.id : Date.parse(a.created_at) < Date.parse(b.created_at);
}

/** sum updates what depends on all rows: counts, the empty state and the button for more. */
function sum() {
  const empty = jobs.size === 0 && $("uploads").childElementCount === 0;
  $("empty").hidden = !empty;
  $("more").hidden = cursor === null;
  const counts = {};
  for (const job of jobs.values()) counts[state(job)] = (counts[state(job)] ?? 0) + 1;
  const parts = ["processing", "queued", "complete", "failed", "expired", "cancelled"].filter((s) => counts[s]).map((s) => `${counts[s]} ${s}`);
  $("sum").textContent = empty ? "" : parts.join(", ") + (cursor === null ? "" : ", and older ones");
}

/** inTurn runs reads of the list one after the other, so that none removes rows that another has added, or moves its cursor. */
let reads = Promise.resolve();
function inTurn(read) {
  reads = reads.then(read);
  return reads;
}

/** load reads the newest jobs, as many as are shown. Calls before a load begins share it. */
let waiting = null;
function load() {
  waiting ??= inTurn(() => {
    waiting = null;
    return newest();
  });
  return waiting;
}

async function newest() {
  try {
    let next = "";
    let seen = 0;
    const wanted = Math.max(page, rows.size);
    const shown = [...rows.keys(), ...[...$("jobs").children].map((row) => row.dataset.id)]; // jobs that are uploaded in the meantime stay
    const found = new Set();
    do {
      const answer = await call(`/api/jobs?limit=${page}${next ? `&cursor=${encodeURIComponent(next)}` : ""}`);
      for (const job of answer.jobs) {
        put(job);
        found.add(job.id);
      }
      seen += answer.jobs.length;
      next = answer.next_cursor;
    } while (next && seen < wanted);
    cursor = next || null;
    for (const id of shown) if (!found.has(id)) drop(id);
    showReachable(null);
  } catch (problem) {
    showReachable(problem);
    setTimeout(load, 5000);
  }
  sum();
}

function drop(id) {
  (rows.get(id) ?? document.getElementById(`job-${id}`))?.remove();
  rows.delete(id);
  jobs.delete(id);
}

/** more shows the next older jobs. */
async function more() {
  const button = $("more").querySelector("button");
  button.disabled = true;
  await inTurn(loadOlder);
  button.disabled = false;
  sum();
}

async function loadOlder() {
  if (cursor === null) return; // a load has reached the last job, or failed and will run again
  try {
    const answer = await call(`/api/jobs?limit=${page}&cursor=${encodeURIComponent(cursor)}`);
    answer.jobs.forEach(put);
    cursor = answer.next_cursor || null;
    if (answer.jobs.length > 0) rows.get(answer.jobs[0].id).focus({ preventScroll: true });
  } catch (problem) {
    showReachable(problem);
    say(problem.message);
  }
}

/** changed marks a job as changed. Changes within 100 ms are read together. */
function changed(id) {
  dirty.add(id);
  if (flushing) return;
  flushing = true;
  setTimeout(flush, 100);
}

async function flush() {
  const ids = [...dirty];
  dirty = new Set();
  if (ids.length > 8) await load();
  else await Promise.all(ids.map(refresh));
  ask();
  flushing = false;
  if (dirty.size > 0) changed([...dirty][0]);
}

async function refresh(id) {
  try {
    put(await call(`/api/jobs/${id}`));
    showReachable(null);
  } catch (problem) {
    if (problem.status === 404) drop(id);
    else showReachable(problem);
  }
  sum();
}

async function retry(job, row) {
  const button = row.querySelector('[data-part="retry"] button');
  button.disabled = true;
  try {
    put(await call(`/api/jobs/${job.id}/retry`, { method: "POST" }));
    row.focus({ preventScroll: true });
  } catch (problem) {
    say(`${job.filename}: ${problem.message}`);
    notice(problem.message);
    await refresh(job.id);
  }
  sum();
}

function notice(text) {
  $("notice-text").textContent = text;
  $("notice").hidden = text === "";
}

/** gateway shows or hides the banner of the converter. When its state changes, the rows are reloaded, because waiting rows mention it. */
let held = false;
function gateway(now) {
  if (!$("unreachable").hidden) load();
  const busy = now.state !== "closed" && now.message !== "" && now.message !== null;
  $("busy").hidden = !busy;
  if (busy) {
    $("busy-text").textContent = now.message;
    $("busy-count").textContent = now.held > 0 ? `${files(now.held)} ${now.held === 1 ? "is" : "are"} waiting.` : "";
  }
  if (busy !== held) {
    say(busy ? now.message : "The converter is available again.");
    load();
  }
  held = busy;
}

/** theme switches between light and dark, and stores the choice. */
function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch { /* without storage, the choice lasts as long as the page */ }
  say(`${dark ? "Light" : "Dark"} theme.`);
}

/** mappings stores the chosen mapping, and reads the list of mappings from the server. */
async function mappings() {
  const select = $("mapping");
  const remember = () => {
    try {
      localStorage.setItem("mapping", select.value);
    } catch { /* without storage, the next visit starts with the first mapping */ }
  };
  const recall = () => {
    try {
      const last = localStorage.getItem("mapping");
      if ([...select.options].some((option) => option.value === last)) select.value = last;
    } catch { /* without storage, the first mapping is chosen */ }
  };
  select.addEventListener("change", remember);
  recall();
  try {
    const { mappings: known } = await call("/api/mappings");
    const chosen = select.value;
    const same = known.length === select.options.length && known.every((m, i) => m.name === select.options[i].value);
    if (!same && known.length > 0) {
      select.replaceChildren(...known.map((m) => new Option(m.title && m.title !== m.name ? `${m.name}: ${m.title}` : m.name, m.name)));
      if (known.some((m) => m.name === chosen)) select.value = chosen;
      recall();
    }
  } catch { /* keep the list that the server rendered */ }
}

/** listen sets up the event handlers of the page. They are on the lists, so that they also work for rows that are added later. */
function listen() {
  $("jobs").addEventListener("submit", (event) => {
    const row = event.target.closest("li");
    const job = jobs.get(row?.dataset.id);
    if (!job) return;
    event.preventDefault();
    retry(job, row);
  });
  $("jobs").addEventListener("click", async (event) => {
    const link = event.target.closest('[data-part="preview"]');
    const id = link?.closest("li").dataset.id;
    if (!id || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!jobs.has(id)) await refresh(id); // a row that the server rendered, before the list is read
    if (jobs.has(id)) show(jobs.get(id), link);
  });
  const dialog = $("preview");
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.querySelector('[data-part="close"]').addEventListener("click", () => dialog.close());
  $("more").addEventListener("submit", (event) => {
    event.preventDefault();
    more();
  });
  $("theme").addEventListener("click", theme);
  $("notice-close").addEventListener("click", () => notice(""));
  $("unreachable-retry").addEventListener("click", load);
  setInterval(() => rows.forEach((row, id) => tick(row, jobs.get(id))), 1000);
}

begin({
  say,
  changed: sum,
  refused: changed,
  accepted(job, duplicate) {
    put(job);
    sum();
    if (!duplicate) return;
    notice(`You have already uploaded ${job.filename} with this mapping, so it was not converted again.`);
    rows.get(job.id).scrollIntoView({ block: "nearest" });
    rows.get(job.id).focus({ preventScroll: true });
  },
});
listen();
mappings();
load();
ask = watch(gateway, () => showReachable({ unreachable: true }));
follow({
  changed,
  missed: load,
  connected(live) {
    $("live").dataset.live = String(live);
    $("live-word").textContent = live ? "Live" : "Reconnecting";
  },
});
