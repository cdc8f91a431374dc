// Keeps relative times up to date. The format is the same as on the server (ago in format.go).

const relative = /^(now|in .+|.+ ago)$/;

// ahead is the difference between the clocks of server and browser, in milliseconds.
let ahead = 0;

export function begin() {
  setInterval(tick, 1000);
  document.addEventListener("refreshed", tick);
}

// setServerTime takes the Date header of an answer. It has whole seconds, so differences up to two seconds are ignored.
export function setServerTime(date) {
  const apart = Date.parse(date) - Date.now();
  ahead = Math.abs(apart) > 2000 ? apart : 0;
}

// tick updates all relative times, except those in a text selection.
function tick() {
  if (document.hidden) return;
  const now = Date.now() + ahead;
  const chosen = document.getSelection();
  for (const time of document.querySelectorAll("time[datetime]")) {
    const words = time.firstChild;
    if (!words || time.childNodes.length !== 1 || words.nodeType !== Node.TEXT_NODE || !relative.test(words.nodeValue)) continue;
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue;
    const text = ago(at, now);
    if (text === words.nodeValue || (chosen && !chosen.isCollapsed && chosen.containsNode(time, true))) continue;
    words.nodeValue = text;
  }
}

// ago formats a time relative to now, in the past or in the future.
export function ago(at, now) {
  const seconds = Math.round((now - at) / 1000);
  if (seconds === 0) return "now";
  return seconds > 0 ? coarse(seconds) + " ago" : "in " + coarse(-seconds);
}

function coarse(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}
