// Live updates. One server-sent event stream reports which topics have changed, never what changed. The page is then fetched again, with the
// permissions of its visitor, and merged into the open page.

import * as refresh from "./refresh.js";
import * as times from "./times.js";

const words = { connecting: "Connecting", live: "Live", paused: "Paused", away: "Offline, retrying", out: "Signed out" };
const pausedKey = "holdfast-paused";
const refreshInterval = 1000; // minimum time between two refreshes of a page
const menuInterval = 10_000; // minimum time between two refreshes of the menu counts, when the page itself is not affected
const hiddenTimeout = 5000; // before a hidden page disconnects
const connectDelay = 1500; // refresh after connecting: shows changes from before the server started to watch
const maxRetryDelay = 30_000; // between two attempts to connect

let source = null; // the EventSource, or null
let retryTimer = 0; // reconnects after the server refused
let failures = 0; // in a row
let signedOut = false; // no more requests
let paused = false;
let hiddenTimer = 0; // disconnects a hidden page
let fetching = null; // the AbortController of the request in progress
let refreshTimer = 0; // the next refresh
let refreshAt = 0;
let due = ""; // what to refresh: "page", "menu" or nothing
let last = 0; // when the last refresh ended
let topics = [];
let base = "";

export function begin() {
  if (!document.getElementById("live")) return; // the visitor is not signed in
  base = document.body.dataset.base ?? "";
  topics = (document.body.dataset.topics ?? "").split(" ").filter(Boolean);
  paused = wasPaused();
  refresh.begin();
  document.getElementById("live-pause")?.addEventListener("click", () => setPaused(!paused));
  document.addEventListener("visibilitychange", onVisibilityChange);
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (e) => { if (e.persisted) resume(); });
  addEventListener("online", resume);
  showPause();
  if (paused) show("paused");
  else connect();
  if (document.hidden) onVisibilityChange();
}

// connect opens the stream. The browser reconnects automatically and sends the last event id.
function connect() {
  if (source || paused || signedOut) return;
  clearTimeout(retryTimer);
  show(failures ? "away" : "connecting");
  source = new EventSource(base + "/live");
  source.addEventListener("hello", () => {
    failures = 0;
    show("live");
    schedule("page", connectDelay);
  });
  source.addEventListener("change", (e) => onChange(e.data));
  source.addEventListener("error", () => {
    show("away");
    if (source?.readyState === EventSource.CLOSED) onRefused();
  });
}

// onRefused: the server answered without a stream. Fetching the page shows whether the visitor is still signed in; then reconnect.
function onRefused() {
  source = null;
  failures++;
  schedule("page", 0);
  clearTimeout(retryTimer);
  retryTimer = setTimeout(connect, Math.min(1000 * 2 ** failures, maxRetryDelay));
}

// onChange schedules a refresh for the changed topics.
function onChange(text) {
  let changed = [];
  try {
    changed = JSON.parse(text).topics ?? [];
  } catch {
    return;
  }
  if (changed.some((topic) => topics.includes(topic))) schedule("page", 0);
  else schedule("menu", Math.max(0, last + menuInterval - Date.now()));
}

// schedule refreshes the page or its menu after a delay. There is one request at a time and at most one a second; changes in the meantime lead to
// one further refresh.
function schedule(what, after) {
  if (paused || signedOut) return;
  if (due !== "page") due = what === "page" && topics.length > 0 ? "page" : "menu";
  if (fetching) return;
  const at = Math.max(Date.now() + after, last + refreshInterval);
  if (refreshTimer && refreshAt <= at) return;
  clearTimeout(refreshTimer);
  refreshAt = at;
  refreshTimer = setTimeout(fetchPage, at - Date.now());
}

// fetchPage fetches the page again and merges it.
async function fetchPage() {
  const what = due;
  refreshTimer = 0;
  due = "";
  if (paused || signedOut) return;
  const mine = new AbortController();
  fetching = mine;
  let again = 0;
  try {
    const answer = await fetch(location.href, { headers: { "X-Live": "1" }, signal: mine.signal, cache: "no-store" });
    again = await applyAnswer(answer, what, mine.signal);
  } catch {
    if (!mine.signal.aborted) again = -1;
  }
  if (fetching !== mine) return; // it was cancelled, and another request may have started
  fetching = null;
  last = Date.now();
  if (again < 0) {
    failures++;
    show("away");
    schedule(what, Math.min(1000 * 2 ** failures, maxRetryDelay));
  } else if (due) {
    schedule(due, due === "menu" ? menuInterval : 0);
  }
}

// applyAnswer merges an answer. It returns -1 if the request should be repeated.
async function applyAnswer(answer, what, signal) {
  if (answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === base + "/sign-in")) {
    signOut();
    return 0;
  }
  if (answer.headers.get("Date")) times.setServerTime(answer.headers.get("Date"));
  if (answer.status >= 500 || answer.status === 429) return -1;
  if (!answer.ok) return 0; // the page no longer exists: keep showing the last version
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (signal.aborted) return 0;
  failures = 0;
  if (source?.readyState === EventSource.OPEN) show("live");
  if (what === "page") refresh.refreshPage(page);
  else refresh.refreshMenus(page);
  return 0;
}

// disconnect closes the stream and cancels the request in progress.
function disconnect() {
  source?.close();
  source = null;
  fetching?.abort();
  fetching = null;
  clearTimeout(retryTimer);
  clearTimeout(refreshTimer);
  refreshTimer = 0;
  due = "";
}

// resume reconnects and refreshes the page once.
function resume() {
  if (paused || signedOut || document.hidden) return;
  disconnect();
  connect();
  schedule("page", 0);
}

// onVisibilityChange disconnects a page that is hidden for a while.
function onVisibilityChange() {
  clearTimeout(hiddenTimer);
  if (document.hidden) hiddenTimer = setTimeout(disconnect, hiddenTimeout);
  else if (!source) resume();
}

function signOut() {
  signedOut = true;
  disconnect();
  show("out");
}

// setPaused stops or resumes all requests, also on the next pages of this tab.
function setPaused(on) {
  paused = on;
  try {
    if (on) sessionStorage.setItem(pausedKey, "1");
    else sessionStorage.removeItem(pausedKey);
  } catch {
    // no session storage: only this page is paused
  }
  showPause();
  if (!on) return resume();
  disconnect();
  if (!signedOut) show("paused");
}

function wasPaused() {
  try {
    return sessionStorage.getItem(pausedKey) === "1";
  } catch {
    return false;
  }
}

function showPause() {
  const button = document.getElementById("live-pause");
  if (!button) return;
  button.setAttribute("aria-pressed", String(paused));
  button.querySelector("use")?.setAttribute("href", paused ? "#icon-play" : "#icon-pause");
  const label = button.querySelector(".visually-hidden");
  if (label) label.textContent = paused ? "Resume live updates" : "Pause live updates";
}

// show displays the state of the connection.
function show(state) {
  const indicator = document.getElementById("live");
  const word = document.getElementById("live-word");
  const known = state === "out" ? "away" : state;
  if (indicator.dataset.state !== known) indicator.dataset.state = known;
  if (word && word.textContent !== words[state]) word.textContent = words[state];
}
