// The queue page. The server renders the first rows; from then on this keeps them true.
import { follow, watch } from "./live.js";
import { show } from "./preview.js";
import { make, paint, state, tick } from "./row.js";
import { begin } from "./upload.js";
import { files } from "./words.js";

const $ = (id) => document.getElementById(id);
const jobs = new Map(); // by id
const rows = new Map(); // by id
const expired = document.body.dataset.expired;
const page = 50;
let cursor = null; // of the first row that is not shown
let dirty = new Set();
let flushing = false;
let ask = () => {};

/** say tells those who do not see. Much at once is summed up. */
let unsaid = [];
function say(text) {
  unsaid.push(text);
  if (unsaid.length > 1) return;
  setTimeout(() => {
    $("said").textContent = unsaid.length > 3 ? `${unsaid.length} changes. The last: ${unsaid.at(-1)}` : unsaid.join(" ");
    unsaid = [];
  }, 400);
}

/** call asks the API. What it refuses becomes an error with the line to show; a server that is away is told apart. */
async function call(path, options) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, ...options }).catch(() => {
    throw Object.assign(new Error("The server cannot be reached. Try again in a moment."), { away: true });
  });
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw Object.assign(new Error(body?.error_message || "The server could not answer. Try again in a moment."), { status: answer.status });
  return body;
}

/** away shows or hides that the server cannot be reached. */
function away(problem) {
  $("away").hidden = !(problem?.away || problem?.status >= 500);
  if (problem && !problem.away && !problem.status) console.error(problem); // a mistake of ours
}

/** put shows a job where it belongs: newest first. */
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

/** sum brings what depends on all rows up to date. */
function sum() {
  const empty = jobs.size === 0 && $("uploads").childElementCount === 0;
  $("empty").hidden = !empty;
  $("more").hidden = cursor === null;
  const counts = {};
  for (const job of jobs.values()) counts[state(job)] = (counts[state(job)] ?? 0) + 1;
  const parts = ["processing", "queued", "complete", "failed", "expired", "cancelled"].filter((s) => counts[s]).map((s) => `${counts[s]} ${s}`);
  $("sum").textContent = empty ? "" : parts.join(", ") + (cursor === null ? "" : ", and older ones");
}

/** inTurn has reads of the list run one after the other: none drops what another has brought, or moves its cursor. */
let line = Promise.resolve();
function inTurn(read) {
  line = line.then(read);
  return line;
}

/** load reads the newest jobs, as many as are shown. A load that has not begun yet serves everybody who asks for one. */
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
    const shown = [...rows.keys(), ...[...$("jobs").children].map((row) => row.dataset.id)]; // what is uploaded meanwhile stays
    const there = new Set();
    do {
      const answer = await call(`/api/jobs?limit=${page}${next ? `&cursor=${encodeURIComponent(next)}` : ""}`);
      for (const job of answer.jobs) {
        put(job);
        there.add(job.id);
      }
      seen += answer.jobs.length;
      next = answer.next_cursor;
    } while (next && seen < wanted);
    cursor = next || null;
    for (const id of shown) if (!there.has(id)) drop(id);
    away(null);
  } catch (problem) {
    away(problem);
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
  await inTurn(further);
  button.disabled = false;
  sum();
}

async function further() {
  if (cursor === null) return; // a load has met the last job, or failed and is tried again
  try {
    const answer = await call(`/api/jobs?limit=${page}&cursor=${encodeURIComponent(cursor)}`);
    answer.jobs.forEach(put);
    cursor = answer.next_cursor || null;
    if (answer.jobs.length > 0) rows.get(answer.jobs[0].id).focus({ preventScroll: true });
  } catch (problem) {
    away(problem);
    say(problem.message);
  }
}

/** changed notes that a job is not what it was. Many at once are read in one go. */
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
    away(null);
  } catch (problem) {
    if (problem.status === 404) drop(id);
    else away(problem);
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

/** gateway shows or hides the banner. When the converter goes or comes, the waiting rows say so too. */
let held = false;
function gateway(now) {
  if (!$("away").hidden) load();
  const busy = now.state !== "closed" && now.message !== "" && now.message !== null;
  $("busy").hidden = !busy;
  if (busy) {
    $("busy-text").textContent = now.message;
    $("busy-count").textContent = now.held > 0 ? `${files(now.held)} ${now.held === 1 ? "waits" : "wait"}.` : "";
  }
  if (busy !== held) {
    say(busy ? now.message : "The converter is back.");
    load();
  }
  held = busy;
}

/** theme switches between light and dark and remembers it. */
function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch { /* it lasts as long as the page */ }
  say(`${dark ? "Light" : "Dark"} theme.`);
}

/** mapping remembers the choice, and asks what there is. */
async function mappings() {
  const select = $("mapping");
  const remember = () => {
    try {
      localStorage.setItem("mapping", select.value);
    } catch { /* the next visit begins with the first */ }
  };
  const recall = () => {
    try {
      const last = localStorage.getItem("mapping");
      if ([...select.options].some((option) => option.value === last)) select.value = last;
    } catch { /* the first one it is */ }
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
  } catch { /* those the server rendered will do */ }
}

/** listen wires what people do with rows, wherever they come from. */
function listen() {
  $("jobs").addEventListener("submit", (event) => {
    const row = event.target.closest("li");
    const job = jobs.get(row?.dataset.id);
    if (!job) return;
    event.preventDefault();
    retry(job, row);
  });
  $("jobs").addEventListener("click", (event) => {
    const link = event.target.closest('[data-part="preview"]');
    const job = jobs.get(link?.closest("li").dataset.id);
    if (!job || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(job, link);
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
  $("away-again").addEventListener("click", load);
  setInterval(() => rows.forEach((row, id) => tick(row, jobs.get(id))), 1000);
}

begin({
  say,
  changed: sum,
  noted: changed,
  taken(job, twin) {
    put(job);
    sum();
    if (!twin) return;
    notice(`${job.filename} is already here with this mapping, so it was not converted again.`);
    rows.get(job.id).scrollIntoView({ block: "nearest" });
    rows.get(job.id).focus({ preventScroll: true });
  },
});
listen();
mappings();
load();
ask = watch(gateway, () => away({ away: true }));
follow({
  changed,
  missed: load,
  connected(live) {
    $("live").dataset.live = String(live);
    $("live-word").textContent = live ? "Live" : "Reconnecting";
  },
});
