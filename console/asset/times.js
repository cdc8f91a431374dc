// Times that say how long ago something was go on saying it. The words are the server's own (ago in words.go).

const relative = /^(now|in .+|.+ ago)$/;

// ahead is how far the server's clock is ahead of the browser's, in milliseconds.
let ahead = 0;

export function begin() {
  setInterval(tick, 1000);
  document.addEventListener("renewed", tick);
}

// hear takes the time that the server gave with an answer. It counts whole seconds, so a small difference is none.
export function hear(date) {
  const apart = Date.parse(date) - Date.now();
  ahead = Math.abs(apart) > 2000 ? apart : 0;
}

// tick says all times anew. Words that somebody is selecting stay as they are.
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

// ago is how long ago something was, or how soon it will be.
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
