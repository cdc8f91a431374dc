// Keyboard navigation and selection in lists. A list is [data-rows], a row [data-row], and its link a[data-open].

let anchor = null; // the last ticked box: ranges start there
let place = -1; // position of the current row, in case it is removed

export function begin() {
  document.addEventListener("click", onClick);
  document.addEventListener("mousedown", (e) => {
    if (e.shiftKey && e.target.closest?.("[data-row] input[name=job]")) e.preventDefault(); // do not select text while selecting a range of rows
  });
  document.addEventListener("change", onChange);
  document.addEventListener("focusin", (e) => {
    const row = e.target.closest?.("[data-rows] [data-row]");
    if (row) setCurrent(row);
  });
  document.addEventListener("refreshed", sync);
  addEventListener("pageshow", sync); // the browser may have restored ticked boxes
  sync();
}

const visible = (element) => element.checkVisibility();
const rows = () => [...document.querySelectorAll("[data-rows] [data-row]")].filter(visible);
const boxOf = (row) => row?.querySelector("input[name=job]");
const boxes = (within = document) => [...within.querySelectorAll("[data-rows] [data-row] input[name=job]")].filter((box) => !box.disabled);
const ticked = () => boxes().filter((box) => box.checked);

// current returns the row that shortcuts apply to.
export const current = () => document.querySelector("[data-rows] [data-row][data-current]");

// selected reports whether any row is selected.
export const selected = () => ticked().length > 0;

function setCurrent(row) {
  const was = current();
  if (was !== row) {
    was?.removeAttribute("data-current");
    row.setAttribute("data-current", "");
  }
  place = rows().indexOf(row);
}

const openerOf = (row) => row.querySelector("a[data-open]") ?? row.querySelector("a[href]");

// move makes the next or previous row current and focuses its link.
export function move(by) {
  const all = rows();
  if (all.length === 0) return false;
  const here = all.indexOf(current());
  let to = here + by;
  if (here < 0) to = place < 0 ? 0 : place + Math.min(by, 0); // the row at the position of a removed one
  const row = all[Math.max(0, Math.min(to, all.length - 1))];
  setCurrent(row);
  let target = openerOf(row);
  if (!target) {
    row.tabIndex = -1;
    target = row;
  }
  target.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
  return true;
}

// open follows the link of the current row.
export function open() {
  const link = current() && openerOf(current());
  link?.click();
  return Boolean(link);
}

// toggle selects or deselects the current row.
export function toggle() {
  const box = boxOf(current());
  if (!box || box.disabled) return false;
  box.checked = !box.checked;
  onTick(box);
  return true;
}

// selectRange selects from the last ticked row to the current one.
export function selectRange() {
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
  onTick(to);
}

// togglePage selects all rows of the page, or none if all are selected.
export function togglePage() {
  const all = boxes();
  if (all.length === 0) return false;
  setAll(all, !all.every((box) => box.checked));
  return true;
}

// allMatching selects all matches, on all pages.
export function allMatching() {
  const one = document.querySelector("[data-all-matching]");
  if (!one) return false;
  setAll(boxes(), true);
  if (!one.checked) one.click();
  return true;
}

// clear clears the selection.
export function clear() {
  if (!selected() && !matching()?.checked) return false;
  setAll(boxes(), false);
  return true;
}

// nextPage goes to the next page.
export function nextPage() {
  const link = document.querySelector("a[rel=next]");
  link?.click();
  return Boolean(link);
}

function setAll(all, on) {
  for (const box of all) box.checked = on;
  anchor = null;
  updateAllMatching();
}

// onTick remembers the start of the next range and updates the selection.
function onTick(box) {
  anchor = box;
  updateAllMatching();
}

const matching = () => document.querySelector("input[data-all-matching]");

// updateAllMatching: deselecting a row also deselects "all that match".
function updateAllMatching() {
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
    onTick(e.target);
  } else if (e.target.matches("input[data-all-matching]")) {
    if (e.target.checked) for (const box of boxes()) box.checked = true;
    sync();
  }
}

// sync updates the header boxes, the count and the selection bar.
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
