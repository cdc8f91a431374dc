// Pages stay live by one connection that tells when something has changed, never what. The page is then asked for again, as its
// visitor may see it, and what differs is brought in.

import * as renewing from "./renew.js";
import * as times from "./times.js";

const words = { connecting: "Connecting", live: "Live", paused: "Paused", away: "Away: trying again", out: "Signed out" };
const pausedKey = "holdfast-paused";
const atLeast = 1000; // between two renewals of a page
const menuEvery = 10_000; // between two renewals of the counts in the menu, when the page itself is not concerned
const hiddenFor = 5000; // before a page that nobody sees hangs up
const settleFor = 1500; // after connecting: what changed before the server watched is seen then
const longest = 30_000; // between two tries

let source = null; // the connection, or null
let retry = 0; // the timer that connects again, after the server refused
let failures = 0; // in a row
let over = false; // signed out: nothing is asked for any more
let paused = false;
let left = 0; // the timer that hangs up when nobody looks
let asking = null; // what aborts the request under way
let planned = 0; // the timer of the next renewal
let plannedAt = 0;
let due = ""; // what is to be renewed: "page", "menu" or nothing
let last = 0; // when the last renewal ended
let topics = [];
let base = "";

export function begin() {
  if (!document.getElementById("live")) return; // nobody is signed in
  base = document.body.dataset.base ?? "";
  topics = (document.body.dataset.topics ?? "").split(" ").filter(Boolean);
  paused = remembered();
  renewing.begin();
  document.getElementById("live-pause")?.addEventListener("click", () => setPaused(!paused));
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", hangUp);
  addEventListener("pageshow", (e) => { if (e.persisted) resume(); });
  addEventListener("online", resume);
  showPause();
  if (paused) show("paused");
  else connect();
  if (document.hidden) look();
}

// connect opens the connection. The browser opens it again by itself when it breaks, and says where it was.
function connect() {
  if (source || paused || over) return;
  clearTimeout(retry);
  show(failures ? "away" : "connecting");
  source = new EventSource(base + "/live");
  source.addEventListener("hello", () => {
    failures = 0;
    show("live");
    plan("page", settleFor);
  });
  source.addEventListener("change", (e) => heard(e.data));
  source.addEventListener("error", () => {
    show("away");
    if (source?.readyState === EventSource.CLOSED) refused();
  });
}

// refused: the server answered, and not with a stream. A page tells whether the visitor is still known; then it is tried again.
function refused() {
  source = null;
  failures++;
  plan("page", 0);
  clearTimeout(retry);
  retry = setTimeout(connect, Math.min(1000 * 2 ** failures, longest));
}

// heard plans what a change asks for.
function heard(text) {
  let changed = [];
  try {
    changed = JSON.parse(text).topics ?? [];
  } catch {
    return;
  }
  if (changed.some((topic) => topics.includes(topic))) plan("page", 0);
  else plan("menu", Math.max(0, last + menuEvery - Date.now()));
}

// plan has the page or its menu renewed after a while: one request at a time, one in a second, and what comes meanwhile leads to one more.
function plan(what, after) {
  if (paused || over) return;
  if (due !== "page") due = what === "page" && topics.length > 0 ? "page" : "menu";
  if (asking) return;
  const at = Math.max(Date.now() + after, last + atLeast);
  if (planned && plannedAt <= at) return;
  clearTimeout(planned);
  plannedAt = at;
  planned = setTimeout(ask, at - Date.now());
}

// ask fetches the page again and brings it in.
async function ask() {
  const what = due;
  planned = 0;
  due = "";
  if (paused || over) return;
  const mine = new AbortController();
  asking = mine;
  let again = 0;
  try {
    const answer = await fetch(location.href, { headers: { "X-Live": "1" }, signal: mine.signal, cache: "no-store" });
    again = await take(answer, what, mine.signal);
  } catch {
    if (!mine.signal.aborted) again = -1;
  }
  if (asking !== mine) return; // it was called off: somebody else has begun anew
  asking = null;
  last = Date.now();
  if (again < 0) {
    failures++;
    show("away");
    plan(what, Math.min(1000 * 2 ** failures, longest));
  } else if (due) {
    plan(due, due === "menu" ? menuEvery : 0);
  }
}

// take brings an answer in. It answers -1 when it is worth trying again.
async function take(answer, what, signal) {
  if (answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === base + "/sign-in")) {
    signOut();
    return 0;
  }
  if (answer.headers.get("Date")) times.hear(answer.headers.get("Date"));
  if (answer.status >= 500 || answer.status === 429) return -1;
  if (!answer.ok) return 0; // what was here is gone: the page shows what is known
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (signal.aborted) return 0;
  failures = 0;
  if (source?.readyState === EventSource.OPEN) show("live");
  if (what === "page") renewing.renew(page);
  else renewing.renewMenus(page);
  return 0;
}

// hangUp closes the connection and calls off what is under way.
function hangUp() {
  source?.close();
  source = null;
  asking?.abort();
  asking = null;
  clearTimeout(retry);
  clearTimeout(planned);
  planned = 0;
  due = "";
}

// resume begins anew. The connection says hello, and the page is renewed once.
function resume() {
  if (paused || over || document.hidden) return;
  hangUp();
  connect();
  plan("page", 0);
}

// look hangs up when nobody sees the page for a while.
function look() {
  clearTimeout(left);
  if (document.hidden) left = setTimeout(hangUp, hiddenFor);
  else if (!source) resume();
}

function signOut() {
  over = true;
  hangUp();
  show("out");
}

// setPaused really stops everything, also on the next pages of this tab.
function setPaused(on) {
  paused = on;
  try {
    if (on) sessionStorage.setItem(pausedKey, "1");
    else sessionStorage.removeItem(pausedKey);
  } catch {
    // a browser that keeps nothing: this page is paused all the same
  }
  showPause();
  if (!on) return resume();
  hangUp();
  if (!over) show("paused");
}

function remembered() {
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
  const label = button.querySelector(".unseen");
  if (label) label.textContent = paused ? "Resume live updates" : "Pause live updates";
}

// show says how the connection stands, when it stands otherwise than before.
function show(state) {
  const light = document.getElementById("live");
  const word = document.getElementById("live-word");
  const known = state === "out" ? "away" : state;
  if (light.dataset.state !== known) light.dataset.state = known;
  if (word && word.textContent !== words[state]) word.textContent = words[state];
}
