// Live updates: when something happens, the page is requested again and the parts that changed are replaced. So the server alone makes the markup.
// A page takes part if its body has data-live and a part has data-part.

const events = ["queued", "processing", "reclaimed", "retry", "released", "complete", "failed", "cancelled", "manual_retry", "redrive", "cancel", "dead_letter"];
const settleTime = 300; // between the first event and the update
const quietTime = 15000; // without events, the page is still brought up to date

const live = document.getElementById("live");
const word = document.getElementById("live-word");

let pending = 0;
let running = false;

function connected(yes) {
  live.dataset.live = String(yes);
  word.textContent = yes ? "Live" : "Connecting";
}

function changed() {
  if (pending === 0) pending = setTimeout(update, settleTime);
}

async function update() {
  pending = 0;
  if (running || document.hidden) return changed();
  running = true;
  try {
    const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
    if (answer.ok && !answer.redirected) replaceParts(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch { /* the event stream says that the server is gone */ } finally {
    running = false;
  }
}

function replaceParts(fresh) {
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = fresh.getElementById(part.id);
    if (!next || next.isEqualNode(part) || part.contains(document.activeElement)) continue;
    part.replaceWith(document.adoptNode(next));
  }
}

function follow(delay) {
  const source = new EventSource("/events");
  source.addEventListener("open", () => {
    delay = 1000;
    connected(true);
    changed();
  });
  source.addEventListener("error", () => {
    connected(false);
    if (source.readyState !== EventSource.CLOSED) return; // the browser reconnects by itself
    setTimeout(() => follow(Math.min(delay * 2, 30000)), delay);
  });
  source.addEventListener("reset", changed);
  for (const name of events) source.addEventListener("job." + name, changed);
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* it holds until the page is left */ }
});

if (document.body.dataset.live && document.querySelector("[data-part]")) {
  setInterval(changed, quietTime);
  follow(1000);
} else if (live) {
  live.hidden = true;
}
