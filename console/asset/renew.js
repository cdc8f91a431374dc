// Renewing brings a newly rendered page into the one that is open, and never in the way of who uses it: not under a pressed pointer, not
// while something is written or marked, and no row of a list moves under the cursor.

import { merge } from "./merge.js";

// quietFor is how long nobody must be at a list, in milliseconds, before it is renewed by itself after it had to wait.
const quietFor = 2000;

let latest = null; // the newest page that was rendered
let pressed = null; // where the pointer is down
let touched = false; // the pointer is a finger, which is over nothing once it is lifted
const waiting = new Map(); // elements that could not be renewed yet: since when nobody is in their way, or 0

export function begin() {
  addEventListener("pointerdown", (e) => { pressed = e.target; }, true);
  addEventListener("pointerover", (e) => { touched = e.pointerType === "touch"; }, true);
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => setTimeout(() => { pressed = null; }), true);
  addEventListener("blur", () => { pressed = null; });
  setInterval(again, 500);
}

// renew brings in what a page shows.
export function renew(page) {
  latest = page;
  renewMenus(page);
  if (page.title && document.title !== page.title) document.title = page.title;
  keepFocus(() => {
    for (const part of document.querySelectorAll("[data-live][id]")) renewPart(part, false);
  });
}

// renewMenus brings in the counts of the menu only.
export function renewMenus(page) {
  const fresh = page.querySelectorAll("nav.menu");
  document.querySelectorAll("nav.menu").forEach((menu, i) => {
    if (fresh[i] && !busy(menu)) merge(menu, fresh[i]);
  });
}

// again tries those that had to wait. Nothing is asked for: what they wait for is here.
function again() {
  for (const [part, since] of waiting) {
    if (!part.isConnected) {
      waiting.delete(part);
    } else if (busy(part) || (isList(part) && watched(part))) {
      waiting.set(part, 0);
    } else if (!since) {
      waiting.set(part, Date.now());
    } else if (!isList(part) || Date.now() - since >= quietFor) {
      keepFocus(() => renewPart(part, false));
    }
  }
}

// renewPart renews one element, or has it wait. Pressing a list's chip is asking for it: then only writing and marking are in the way.
function renewPart(part, asked) {
  const fresh = part.isConnected && latest?.getElementById(part.id);
  if (!fresh) return;
  if (busy(part) || inner(part).some((one) => busy(one) || (isList(one) && moves(one) && (watched(one) || waiting.has(one)))) || shoves(part, fresh)) {
    wait(part);
    return;
  }
  if (isList(part) && !asked && watched(part) && moves(part)) {
    renewRows(part, fresh);
    wait(part);
    offer(part);
    return;
  }
  waiting.delete(part);
  withdraw(part);
  merge(part, fresh);
}

function wait(part) {
  if (!waiting.has(part)) waiting.set(part, 0);
}

const isList = (part) => part.dataset.live === "list";
const inner = (part) => [...part.querySelectorAll("[data-live][id]")];
const rowsOf = (list) => [...list.querySelectorAll("[data-row]")];

// moves reports whether rows of a list would come, go or change places.
function moves(list) {
  const fresh = latest.getElementById(list.id);
  if (!fresh) return false;
  const order = (one) => rowsOf(one).map((row) => row.dataset.row).join("\n");
  return order(list) !== order(fresh);
}

// renewRows renews the rows that stay, where they are.
function renewRows(list, fresh) {
  const now = new Map(rowsOf(fresh).map((row) => [row.dataset.row, row]));
  for (const row of rowsOf(list)) {
    const is = now.get(row.dataset.row);
    if (is && !busy(row)) merge(row, is);
  }
}

// busy reports whether somebody is using an element in a way that must not be disturbed.
function busy(part) {
  if (pressed && part.contains(pressed)) return true;
  const focused = document.activeElement;
  if (focused && part.contains(focused) && isWriting(focused)) return true;
  const chosen = document.getSelection();
  if (chosen && chosen.rangeCount && !chosen.isCollapsed && chosen.containsNode(part, true)) return true;
  return part.querySelector(":popover-open, dialog[open]") !== null;
}

// isWriting reports whether an element takes what is typed.
export function isWriting(element) {
  if (element.isContentEditable || element.matches("textarea, select")) return true;
  return element.matches("input:not([type=checkbox], [type=radio], [type=button], [type=submit], [type=reset])");
}

// watched reports whether somebody is at a list: the pointer is over it or its chip, rows are selected, focus is inside, or its beginning is out of sight.
function watched(list) {
  const bar = document.querySelector("header.bar")?.getBoundingClientRect().bottom ?? 0;
  return under(list) || chipOf(list)?.matches(":hover") || list.querySelector("input[name=job]:checked") !== null || list.contains(document.activeElement) ||
    (scrollY > 0 && list.getBoundingClientRect().top < Math.max(0, bar));
}

// under reports whether the pointer is over a list.
const under = (list) => !touched && list.matches(":hover");

// shoves reports whether renewing an element would push a list that comes after it away from under the pointer: there would be more or less in it
// than there was. What is drawn keeps its size.
function shoves(part, fresh) {
  const list = [...document.querySelectorAll('[data-live="list"]')].find(under);
  if (!list || !(part.compareDocumentPosition(list) & Node.DOCUMENT_POSITION_FOLLOWING)) return false;
  const size = (one) => one.querySelectorAll(":not(svg *, [data-script])").length;
  return size(part) !== size(fresh);
}

// chipOf is the button that shows what is new in a list. A page may bring its own.
function chipOf(list) {
  return document.querySelector(`[data-live-chip="${CSS.escape(list.id)}"]`) ?? list.parentElement?.querySelector(':scope > [data-live-chip=""]');
}

function offer(list) {
  let chip = chipOf(list);
  if (!chip) {
    chip = document.createElement("button");
    chip.type = "button";
    chip.className = "button small chip live-chip";
    chip.textContent = "Updated. Show";
    chip.setAttribute("data-script", "");
    chip.setAttribute("data-live-chip", list.id);
    list.before(chip);
  }
  chip.hidden = false;
  chip.onclick = () => {
    if (list.getBoundingClientRect().top < 0) list.scrollIntoView({ block: "start" });
    keepFocus(() => renewPart(list, true));
  };
}

function withdraw(list) {
  const chip = chipOf(list);
  if (chip?.hasAttribute("data-script")) chip.remove();
  else if (chip) chip.hidden = true;
}

// keepFocus does something to the page and has focus stay: on the same element, or on the one that took its place. Whoever keeps things
// in step with the page is told after it.
function keepFocus(change) {
  const was = document.activeElement;
  const row = was?.closest("[data-row]")?.dataset.row;
  const href = was?.getAttribute("href");
  change();
  if (was && was !== document.body && document.activeElement !== was) {
    const there = was.isConnected ? was : (was.id && document.getElementById(was.id)) || placeOf(row, href);
    there?.focus({ preventScroll: true });
  }
  document.dispatchEvent(new CustomEvent("renewed"));
}

function placeOf(row, href) {
  if (row) return document.querySelector(`[data-row="${CSS.escape(row)}"] a[data-open], [data-row="${CSS.escape(row)}"] a`);
  return href ? document.querySelector(`main a[href="${CSS.escape(href)}"]`) : null;
}
