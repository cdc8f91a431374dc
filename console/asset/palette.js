// Command palette: pages, jobs by id, actions of this page, and job search.

const jobID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

let dialog = null;
let field = null;
let list = null;
let entries = []; // all pages and actions
let shown = []; // entries in the list
let active = 0;

export function begin() {
  dialog = document.getElementById("palette");
  field = document.getElementById("palette-find");
  list = document.getElementById("palette-list");
  if (!dialog || !field || !list) return;
  field.setAttribute("aria-autocomplete", "list");
  document.addEventListener("keydown", (e) => {
    if (e.key?.toLowerCase() !== "k" || !(e.ctrlKey || e.metaKey) || e.altKey || e.shiftKey) return;
    e.preventDefault();
    if (dialog.open) dialog.close();
    else open();
  });
  field.addEventListener("input", show);
  field.addEventListener("keydown", onKey);
  list.addEventListener("pointerdown", (e) => e.preventDefault()); // keep focus in the field
  list.addEventListener("click", (e) => choose(indexOf(e.target)));
  list.addEventListener("pointermove", (e) => { if (indexOf(e.target) >= 0) highlight(indexOf(e.target)); });
  dialog.addEventListener("click", (e) => { if (e.target === dialog && outside(e)) dialog.close(); });
}

function open() {
  if (document.querySelector("dialog[open]")) return;
  entries = [...actions(), ...pages()];
  field.value = "";
  dialog.showModal();
  field.focus();
  show();
}

const outside = (e) => {
  const box = dialog.getBoundingClientRect();
  return e.clientX < box.left || e.clientX > box.right || e.clientY < box.top || e.clientY > box.bottom;
};

const wordsOf = (element) => element.textContent.replace(/\s+/g, " ").trim();

function pages() {
  const menu = document.querySelector(".menu-side nav.menu") ?? document.querySelector("nav.menu");
  return [...(menu?.querySelectorAll("a[data-go]") ?? [])].map((link) => ({
    name: wordsOf(link.querySelector(".menu-name") ?? link),
    hint: `g ${link.dataset.go}`,
    go: () => link.click(),
  }));
}

// actions returns the actions of this page, without those of rows.
function actions() {
  return [...document.querySelectorAll("[data-key], [data-palette]")]
    .filter((one) => one.checkVisibility() && !one.disabled && !one.closest("[data-rows] [data-row]"))
    .map((one) => ({ name: one.dataset.palette || wordsOf(one), hint: one.dataset.key ?? "", go: () => { one.focus(); one.click(); } }));
}

// matches returns the entries whose name contains all typed words; names that begin with the text come first.
function matches(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = entries.filter((one) => words.every((word) => one.name.toLowerCase().includes(word)));
  const begins = (one) => (one.name.toLowerCase().startsWith(text.toLowerCase()) ? 0 : 1);
  fitting.sort((a, b) => begins(a) - begins(b));
  if (!text) return fitting;
  const base = document.body.dataset.base ?? "";
  if (jobID.test(text)) fitting.unshift({ name: `Job ${text}`, go: () => location.assign(`${base}/jobs/${text.toLowerCase()}`) });
  else fitting.push({ name: `Search jobs for ${text}`, go: () => location.assign(`${base}/jobs?q=${encodeURIComponent(text)}`) });
  return fitting;
}

function show() {
  shown = matches(field.value.trim());
  list.replaceChildren(...shown.map((one, i) => {
    const item = document.createElement("li");
    item.className = "palette-item";
    item.id = `palette-item-${i}`;
    item.setAttribute("role", "option");
    const name = document.createElement("span");
    name.textContent = one.name;
    item.append(name);
    if (one.hint) {
      const hint = document.createElement("kbd");
      hint.textContent = one.hint;
      hint.setAttribute("aria-hidden", "true");
      item.append(" ", hint);
    }
    return item;
  }));
  highlight(0);
}

function highlight(index) {
  active = index;
  [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
  const item = list.children[index];
  if (!item) return field.removeAttribute("aria-activedescendant");
  field.setAttribute("aria-activedescendant", item.id);
  item.scrollIntoView({ block: "nearest" });
}

const indexOf = (target) => [...list.children].indexOf(target.closest(".palette-item"));

function onKey(e) {
  if (e.isComposing || shown.length === 0) return;
  const many = shown.length;
  if (e.key === "ArrowDown") highlight((active + 1) % many);
  else if (e.key === "ArrowUp") highlight((active + many - 1) % many);
  else if (e.key === "Enter") choose(active);
  else return;
  e.preventDefault();
}

function choose(index) {
  const one = shown[index];
  if (!one) return;
  dialog.close();
  one.go();
}
