// Live updates: when something happens, the page is fetched again and the parts that changed are replaced. So the server alone makes the markup.

const eventTypes = ["queued", "processing", "reclaimed", "retry", "released", "complete", "failed", "cancelled", "manual_retry", "redrive", "cancel", "dead_letter"];
const settleTime = 400; // between the first event and the update
const quietTime = 15000; // without events, the page is still brought up to date: ages, proxies

const live = document.getElementById("live");
const word = document.getElementById("live-word");

function connected(yes) {
  live.dataset.live = String(yes);
  word.textContent = yes ? "Live" : "Connecting";
}

let pending = 0;
let running = false;

function changed() {
  if (pending === 0) pending = setTimeout(update, settleTime);
}

async function update() {
  pending = 0;
  if (running || document.hidden) return changed();
  running = true;
  try {
    const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
    if (answer.ok) replaceParts(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch { /* the event stream tells that the server is gone */ } finally {
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
  for (const type of eventTypes) source.addEventListener("job." + type, changed);
}

document.getElementById("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const theme = dark ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("theme", theme); } catch { /* it holds until the page is left */ }
});

setInterval(changed, quietTime);
follow(1000);
