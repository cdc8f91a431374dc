// Display preferences are in a cookie that the server reads (prefs.go), so the next page is rendered in the right theme from the start.

const cookie = "holdfast_prefs";
const year = 365 * 24 * 3600;
const nextTheme = { light: "dark", dark: "", "": "light" };
const themeName = (theme) => theme || "system";

export function begin() {
  saveZone();
  const button = document.getElementById("theme");
  if (!button) return;
  label(button);
  button.addEventListener("click", () => {
    setTheme(nextTheme[theme()]);
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
  const text = `Theme: ${themeName(theme())}. Switch to ${themeName(nextTheme[theme()] ?? "")}`;
  button.title = text;
  const words = button.querySelector(".visually-hidden");
  if (words) words.textContent = text;
}

// saveZone stores the time zone of the browser if none is set. The next page uses it.
function saveZone() {
  if (document.body.dataset.zone) return;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone) keep("zone", zone);
}

// keep stores one preference in the cookie for a year.
function keep(name, value) {
  const prefs = new URLSearchParams(cookieValue());
  if (value) prefs.set(name, value);
  else prefs.delete(name);
  document.cookie = `${cookie}=${prefs}; Path=${document.body.dataset.base ?? ""}/; Max-Age=${year}; SameSite=Strict`;
}

function cookieValue() {
  for (const pair of document.cookie.split("; ")) {
    if (pair.startsWith(cookie + "=")) return pair.slice(cookie.length + 1);
  }
  return "";
}
