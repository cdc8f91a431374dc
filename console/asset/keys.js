// One key does one thing, as the page of keys says. Keys that are typed into fields, or held with Ctrl, Alt or Meta, are not ours.

import { copyText } from "./copy.js";
import { isWriting } from "./renew.js";
import * as rows from "./rows.js";

const chordFor = 1500; // milliseconds within which g waits for its second key

let chord = 0; // the timer of a g that waits

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

const shifted = { "?": openKeys, "/": findJobs, x: rows.reach, a: rows.allMatching };

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

// openRow is for when the current row is not where focus is. What has focus takes Enter itself.
function openRow() {
  return document.activeElement === document.body && rows.open();
}

// act presses what a letter stands for: of the selection when there is one, else of the current row, else of the page. A row that nobody
// chose is never acted on.
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
