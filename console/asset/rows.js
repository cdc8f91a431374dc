// Lists can be walked through and selected with the keyboard. A list is [data-rows], a row [data-row], and what opens it a[data-open].

let anchor = null; // the box that was ticked last: ranges begin there
let place = -1; // of the current row, should it go away

export function begin() {
  document.addEventListener("click", onClick);
  document.addEventListener("mousedown", (e) => {
    if (e.shiftKey && e.target.closest?.("[data-row] input[name=job]")) e.preventDefault(); // a range of rows marks no text
  });
  document.addEventListener("change", onChange);
  document.addEventListener("focusin", (e) => {
    const row = e.target.closest?.("[data-rows] [data-row]");
    if (row) mark(row);
  });
  document.addEventListener("renewed", sync);
  addEventListener("pageshow", sync); // the browser may have ticked boxes again
  sync();
}

const visible = (element) => element.checkVisibility();
const rows = () => [...document.querySelectorAll("[data-rows] [data-row]")].filter(visible);
const boxOf = (row) => row?.querySelector("input[name=job]");
const boxes = (within = document) => [...within.querySelectorAll("[data-rows] [data-row] input[name=job]")].filter((box) => !box.disabled);
const ticked = () => boxes().filter((box) => box.checked);

// current is the row that keys speak of.
export const current = () => document.querySelector("[data-rows] [data-row][data-current]");

// selected reports whether any rows are.
export const selected = () => ticked().length > 0;

function mark(row) {
  const was = current();
  if (was !== row) {
    was?.removeAttribute("data-current");
    row.setAttribute("data-current", "");
  }
  place = rows().indexOf(row);
}

const openerOf = (row) => row.querySelector("a[data-open]") ?? row.querySelector("a[href]");

// move makes the row after or before the current one current. Focus goes along, so that everybody knows where they are.
export function move(by) {
  const all = rows();
  if (all.length === 0) return false;
  const here = all.indexOf(current());
  let to = here + by;
  if (here < 0) to = place < 0 ? 0 : place + Math.min(by, 0); // the row that took the place of one that went away
  const row = all[Math.max(0, Math.min(to, all.length - 1))];
  mark(row);
  let target = openerOf(row);
  if (!target) {
    row.tabIndex = -1;
    target = row;
  }
  target.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
  return true;
}

// open follows the current row's link, for when focus is not on it.
export function open() {
  const link = current() && openerOf(current());
  link?.click();
  return Boolean(link);
}

// toggle selects the current row or no longer does.
export function toggle() {
  const box = boxOf(current());
  if (!box || box.disabled) return false;
  box.checked = !box.checked;
  ticking(box);
  return true;
}

// reach selects from the row that was ticked last to the current one.
export function reach() {
  const box = boxOf(current());
  if (!box || box.disabled) return false;
  range(box, true);
  return true;
}

function range(to, on) {
  const all = boxes();
  const [a, b] = [all.indexOf(anchor), all.indexOf(to)];
  const [first, final] = a < 0 ? [b, b] : [Math.min(a, b), Math.max(a, b)];
  for (const box of all.slice(first, final + 1)) box.checked = on;
  ticking(to);
}

// togglePage selects all rows of the page, or none when all are.
export function togglePage() {
  const all = boxes();
  if (all.length === 0) return false;
  setAll(all, !all.every((box) => box.checked));
  return true;
}

// allMatching selects everything that matches, also beyond this page.
export function allMatching() {
  const one = document.querySelector("[data-all-matching]");
  if (!one) return false;
  setAll(boxes(), true);
  if (!one.checked) one.click();
  return true;
}

// clear selects nothing.
export function clear() {
  if (!selected() && !matching()?.checked) return false;
  setAll(boxes(), false);
  return true;
}

// nextPage goes to it.
export function nextPage() {
  const link = document.querySelector("a[rel=next]");
  link?.click();
  return Boolean(link);
}

function setAll(all, on) {
  for (const box of all) box.checked = on;
  anchor = null;
  settle();
}

// ticking remembers where ranges begin and brings the rest into step.
function ticking(box) {
  anchor = box;
  settle();
}

const matching = () => document.querySelector("input[data-all-matching]");

// settle: whoever takes a row out does not mean all that match any more.
function settle() {
  const whole = matching();
  if (whole?.checked && boxes().some((box) => !box.checked)) whole.checked = false;
  sync();
}

function onClick(e) {
  const box = e.target.closest?.("[data-row] input[name=job]");
  if (box && e.shiftKey) range(box, box.checked);
}

function onChange(e) {
  if (e.target.matches("input[data-all]")) {
    setAll(boxes(e.target.closest("[data-rows]") ?? document), e.target.checked);
  } else if (e.target.matches("[data-row] input[name=job]")) {
    ticking(e.target);
  } else if (e.target.matches("input[data-all-matching]")) {
    if (e.target.checked) for (const box of boxes()) box.checked = true;
    sync();
  }
}

// sync has everything that speaks of the selection say the same.
function sync() {
  for (const head of document.querySelectorAll("input[data-all]")) {
    const all = boxes(head.closest("[data-rows]") ?? document);
    const on = all.filter((box) => box.checked).length;
    head.checked = on > 0 && on === all.length;
    head.indeterminate = on > 0 && on < all.length;
  }
  const whole = matching();
  const count = ticked().length;
  const text = (whole?.checked && whole.dataset.count) || count.toLocaleString("en-US");
  for (const place of document.querySelectorAll("[data-selected-count]")) if (place.textContent !== text) place.textContent = text;
  for (const bar of document.querySelectorAll("[data-selection]")) bar.hidden = count === 0 && !whole?.checked;
}
