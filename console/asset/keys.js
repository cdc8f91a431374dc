// Keyboard shortcuts, as the shortcuts dialog lists them. Keys in input fields, or with Ctrl, Alt or Meta, are ignored.

import { copyText } from "./copy.js";
import { isWriting } from "./refresh.js";
import * as rows from "./rows.js";

const chordFor = 1500; // milliseconds that g waits for its second key

let chord = 0; // the timer of a pending g

const plain = {
  "?": openKeys,
  "/": findJobs,
  g: beginChord,
  p: () => press("#live-pause"),
  t: () => press("#theme"),
  y: () => { copyText(location.href); return true; },
  j: () => rows.move(1),
  k: () => rows.move(-1),
  x: rows.toggle,
  a: rows.togglePage,
  n: rows.nextPage,
  r: () => act("r"),
  e: () => act("e"),
  c: () => act("c"),
  d: () => act("d"),
  escape: rows.clear,
  enter: openRow,
};

const shifted = { "?": openKeys, "/": findJobs, x: rows.selectRange, a: rows.allMatching };

export function begin() {
  document.addEventListener("keydown", onKey);
  document.getElementById("help")?.addEventListener("click", openKeys);
}

function onKey(e) {
  if (e.defaultPrevented || e.isComposing || e.ctrlKey || e.altKey || e.metaKey || !e.key) return;
  if (isWriting(e.target) || document.querySelector("dialog[open], :popover-open")) return;
  const key = e.key.toLowerCase();
  if (chord) {
    if (key === "shift") return;
    endChord();
    if (go(key)) e.preventDefault();
    return;
  }
  if (e.repeat && key !== "j" && key !== "k") return;
  if ((e.shiftKey ? shifted : plain)[key]?.()) e.preventDefault();
}

function openKeys() {
  const dialog = document.getElementById("keys");
  if (!dialog || dialog.open) return false;
  dialog.showModal();
  return true;
}

function findJobs() {
  const field = document.getElementById("find");
  field?.focus();
  field?.select();
  return Boolean(field);
}

function beginChord() {
  chord = setTimeout(endChord, chordFor);
  return true;
}

function endChord() {
  clearTimeout(chord);
  chord = 0;
}

function go(key) {
  const name = CSS.escape(key);
  const link = document.querySelector(`.menu-side a[data-go="${name}"]`) ?? document.querySelector(`a[data-go="${name}"]`);
  link?.click();
  return Boolean(link);
}

function press(selector) {
  const button = document.querySelector(selector);
  button?.click();
  return Boolean(button);
}

// openRow opens the current row if nothing has focus. A focused element handles Enter itself.
function openRow() {
  return document.activeElement === document.body && rows.open();
}

// act presses the button of a letter: of the selection if there is one, else of the current row, else of the page. It never acts on a row that
// is not current.
function act(letter) {
  const found = [...document.querySelectorAll(`[data-key="${letter}"]`)].filter((one) => one.checkVisibility() && !one.disabled);
  const row = rows.current();
  const button = (rows.selected() && found.find((one) => one.closest("[data-selection]"))) ||
    (row && found.find((one) => row.contains(one))) ||
    found.find((one) => !one.closest("[data-rows] [data-row]"));
  if (!button) return false;
  button.focus();
  button.click();
  return true;
}
