// Merges a newly rendered page into the open one without disturbing the visitor: not while the pointer is pressed, not while they type or
// select text, and no list row moves under the pointer.

import { merge } from "./merge.js";

// idleTime is how long a list must be unused, in milliseconds, before a postponed refresh is applied automatically.
const idleTime = 2000;

let latest = null; // the newest rendered page
let pressed = null; // the element under the pressed pointer
let touched = false; // the pointer is a finger, which does not hover
const waiting = new Map(); // postponed elements: since when they are unused, or 0

export function begin() {
  addEventListener("pointerdown", (e) => { pressed = e.target; }, true);
  addEventListener("pointerover", (e) => { touched = e.pointerType === "touch"; }, true);
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => setTimeout(() => { pressed = null; }), true);
  addEventListener("blur", () => { pressed = null; });
  setInterval(retryWaiting, 500);
}

// refreshPage merges a page.
export function refreshPage(page) {
  latest = page;
  refreshMenus(page);
  if (page.title && document.title !== page.title) document.title = page.title;
  keepFocus(() => {
    for (const part of document.querySelectorAll("[data-live][id]")) refreshPart(part, false);
  });
}

// refreshMenus merges only the counts of the menu.
export function refreshMenus(page) {
  const fresh = page.querySelectorAll("nav.menu");
  document.querySelectorAll("nav.menu").forEach((menu, i) => {
    if (fresh[i] && !busy(menu)) merge(menu, fresh[i]);
  });
}

// retryWaiting retries postponed elements. It makes no request: the latest page is already here.
function retryWaiting() {
  for (const [part, since] of waiting) {
    if (!part.isConnected) {
      waiting.delete(part);
    } else if (busy(part) || (isList(part) && inUse(part))) {
      waiting.set(part, 0);
    } else if (!since) {
      waiting.set(part, Date.now());
    } else if (!isList(part) || Date.now() - since >= idleTime) {
      keepFocus(() => refreshPart(part, false));
    }
  }
}

// refreshPart merges one element or postpones it. asked means that the visitor pressed the chip of a list: then only typing and selecting
// text postpone it.
function refreshPart(part, asked) {
  const fresh = part.isConnected && latest?.getElementById(part.id);
  if (!fresh) return;
  if (busy(part) || inner(part).some((one) => busy(one) || (isList(one) && rowsChange(one) && (inUse(one) || waiting.has(one)))) || shiftsList(part, fresh)) {
    wait(part);
    return;
  }
  if (isList(part) && !asked && inUse(part) && rowsChange(part)) {
    refreshRows(part, fresh);
    wait(part);
    showChip(part);
    return;
  }
  waiting.delete(part);
  hideChip(part);
  merge(part, fresh);
}

function wait(part) {
  if (!waiting.has(part)) waiting.set(part, 0);
}

const isList = (part) => part.dataset.live === "list";
const inner = (part) => [...part.querySelectorAll("[data-live][id]")];
const rowsOf = (list) => [...list.querySelectorAll("[data-row]")];

// rowsChange reports whether rows of a list would be added, removed or reordered.
function rowsChange(list) {
  const fresh = latest.getElementById(list.id);
  if (!fresh) return false;
  const order = (one) => rowsOf(one).map((row) => row.dataset.row).join("\n");
  return order(list) !== order(fresh);
}

// refreshRows merges the rows that stay in place.
function refreshRows(list, fresh) {
  const now = new Map(rowsOf(fresh).map((row) => [row.dataset.row, row]));
  for (const row of rowsOf(list)) {
    const is = now.get(row.dataset.row);
    if (is && !busy(row)) merge(row, is);
  }
}

// busy reports whether the visitor is using an element: pressing, typing, selecting text, or with an open popup.
function busy(part) {
  if (pressed && part.contains(pressed)) return true;
  const focused = document.activeElement;
  if (focused && part.contains(focused) && isWriting(focused)) return true;
  const selection = document.getSelection();
  if (selection && selection.rangeCount && !selection.isCollapsed && selection.containsNode(part, true)) return true;
  return part.querySelector(":popover-open, dialog[open]") !== null;
}

// isWriting reports whether an element accepts typed text.
export function isWriting(element) {
  if (element.isContentEditable || element.matches("textarea, select")) return true;
  return element.matches("input:not([type=checkbox], [type=radio], [type=button], [type=submit], [type=reset])");
}

// inUse reports whether the visitor uses a list: the pointer is over it or its chip, rows are selected, focus is inside, or its start is scrolled
// out of view.
function inUse(list) {
  const bar = document.querySelector("header.bar")?.getBoundingClientRect().bottom ?? 0;
  return hovered(list) || chipOf(list)?.matches(":hover") || list.querySelector("input[name=job]:checked") !== null || list.contains(document.activeElement) ||
    (scrollY > 0 && list.getBoundingClientRect().top < Math.max(0, bar));
}

// hovered reports whether the pointer is over a list.
const hovered = (list) => !touched && list.matches(":hover");

// shiftsList reports whether merging an element would move a list after it away from under the pointer, because the number of elements changes.
// SVG pictures keep their size.
function shiftsList(part, fresh) {
  const list = [...document.querySelectorAll('[data-live="list"]')].find(hovered);
  if (!list || !(part.compareDocumentPosition(list) & Node.DOCUMENT_POSITION_FOLLOWING)) return false;
  const size = (one) => one.querySelectorAll(":not(svg *, [data-script])").length;
  return size(part) !== size(fresh);
}

// chipOf returns the button that applies a postponed refresh of a list. A page may have its own.
function chipOf(list) {
  return document.querySelector(`[data-live-chip="${CSS.escape(list.id)}"]`) ?? list.parentElement?.querySelector(':scope > [data-live-chip=""]');
}

function showChip(list) {
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
    keepFocus(() => refreshPart(list, true));
  };
}

function hideChip(list) {
  const chip = chipOf(list);
  if (chip?.hasAttribute("data-script")) chip.remove();
  else if (chip) chip.hidden = true;
}

// keepFocus changes the page and restores focus to the same element or to its replacement. Then it dispatches "refreshed" for other scripts.
function keepFocus(change) {
  const was = document.activeElement;
  const row = was?.closest("[data-row]")?.dataset.row;
  const href = was?.getAttribute("href");
  change();
  if (was && was !== document.body && document.activeElement !== was) {
    const there = was.isConnected ? was : (was.id && document.getElementById(was.id)) || placeOf(row, href);
    there?.focus({ preventScroll: true });
  }
  document.dispatchEvent(new CustomEvent("refreshed"));
}

function placeOf(row, href) {
  if (row) return document.querySelector(`[data-row="${CSS.escape(row)}"] a[data-open], [data-row="${CSS.escape(row)}"] a`);
  return href ? document.querySelector(`main a[href="${CSS.escape(href)}"]`) : null;
}
