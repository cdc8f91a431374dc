// How a visitor likes pages is in a cookie that the server reads (prefs.go): the next page comes as it should, without a flash.

const cookie = "holdfast_prefs";
const year = 365 * 24 * 3600;
const following = { light: "dark", dark: "", "": "light" };
const named = (theme) => theme || "system";

export function begin() {
  learnZone();
  const button = document.getElementById("theme");
  if (!button) return;
  label(button);
  button.addEventListener("click", () => {
    setTheme(following[theme()]);
    label(button);
  });
}

const theme = () => document.documentElement.dataset.theme ?? "";

function setTheme(next) {
  if (next) document.documentElement.dataset.theme = next;
  else delete document.documentElement.dataset.theme;
  keep("theme", next);
}

function label(button) {
  const text = `Theme: ${named(theme())}. Switch to ${named(following[theme()] ?? "")}`;
  button.title = text;
  const words = button.querySelector(".unseen");
  if (words) words.textContent = text;
}

// learnZone tells the server the visitor's time zone when it knows none. The next page uses it.
function learnZone() {
  if (document.body.dataset.zone) return;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone) keep("zone", zone);
}

// keep remembers one preference beside the others for a year.
function keep(name, value) {
  const prefs = new URLSearchParams(written());
  if (value) prefs.set(name, value);
  else prefs.delete(name);
  document.cookie = `${cookie}=${prefs}; Path=${document.body.dataset.base ?? ""}/; Max-Age=${year}; SameSite=Strict`;
}

function written() {
  for (const pair of document.cookie.split("; ")) {
    if (pair.startsWith(cookie + "=")) return pair.slice(cookie.length + 1);
  }
  return "";
}
