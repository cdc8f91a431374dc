// Autocompletion of qualifiers and values in job search fields: state:failed, kind:… The list opens while typing or with the arrow keys. Enter
// without a chosen option submits the field.

const names = ["state", "kind", "queue", "owner", "code", "category", "fingerprint", "dependency", "tag", "worker", "group", "redrive", "generation", "age", "is"];
const fixed = { state: ["queued", "processing", "complete", "failed", "cancelled"], is: ["dead", "retrying"], age: [">1h", ">1d", "<15m"] };
const mostShown = 8;
const typingDelay = 120; // milliseconds without a key before a request

const known = new Map(); // answers of the server, by URL
let open = null; // the open list: { field, list, options, token, active }
let latest = 0; // number of the latest suggestion: older answers are ignored
let created = 0; // number of created lists, for their ids

export function begin() {
  for (const field of document.querySelectorAll("input[data-complete]")) prepare(field);
  document.addEventListener("input", (e) => { if (e.target.matches?.("input[data-complete]")) suggest(e.target, false); });
  document.addEventListener("focusin", (e) => { if (e.target.matches?.("input[data-complete]")) prepare(e.target); });
  document.addEventListener("focusout", (e) => { if (e.target === open?.field) close(); });
  document.addEventListener("keydown", onKey, true);
}

// prepare makes a field a combobox.
function prepare(field) {
  if (field.getAttribute("role") === "combobox") return;
  field.autocomplete = "off";
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-expanded", "false");
}

// tokenAt returns the word at the cursor, between spaces outside of quotes. Within quotes a backslash escapes a quote, as in the search.
export function tokenAt(text, at) {
  let start = 0;
  let end = text.length;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    if (quoted && text[i] === "\\") {
      i++;
    } else if (text[i] === '"') {
      quoted = !quoted;
    } else if (!quoted && /\s/.test(text[i])) {
      if (i >= at) {
        end = i;
        break;
      }
      start = i + 1;
    }
  }
  if (quoted) end = at; // an open quote ends at the cursor
  const typed = text.slice(start, at);
  const colon = typed.indexOf(":");
  const name = colon < 0 ? "" : typed.slice(0, colon).toLowerCase();
  const value = colon < 0 ? typed : typed.slice(colon + 1).replace(/^"/, "").replace(/\\(["\\])/g, "$1");
  return { start, end, typed, name, value };
}

// suggest shows completions. An empty word is completed only if the visitor asked for it.
async function suggest(field, asked) {
  const turn = ++latest;
  const token = tokenAt(field.value, field.selectionStart ?? field.value.length);
  if (!token.typed && !asked) return close();
  const options = (await optionsFor(token, turn)).filter((one) => one.trim() !== token.typed).slice(0, mostShown);
  if (turn !== latest || document.activeElement !== field) return;
  if (options.length === 0) return close();
  show(field, options, token);
}

async function optionsFor(token, turn) {
  const typed = token.value.toLowerCase();
  const fits = (value) => value.toLowerCase().startsWith(typed);
  if (!token.name) {
    if (token.typed.includes(":")) return [];
    const direct = typed ? ["state", "is"].flatMap((name) => fixed[name].filter(fits).map((value) => `${name}:${value} `)) : [];
    return [...names.filter(fits).map((name) => name + ":"), ...direct];
  }
  if (!names.includes(token.name)) return [];
  const values = fixed[token.name] ?? await fetchValues(token.name, token.value, turn);
  return values.filter((value) => value.toLowerCase().includes(typed)).map((value) => `${token.name}:${quote(value)} `);
}

const quote = (value) => (/[\s"]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value);

// fetchValues asks the server for values, once for each prefix. On an error it returns none.
async function fetchValues(name, value, turn) {
  const address = `${document.body.dataset.base ?? ""}/jobs/complete?${new URLSearchParams({ name, value })}`;
  if (known.has(address)) return known.get(address);
  await new Promise((resolve) => setTimeout(resolve, typingDelay));
  if (turn !== latest) return [];
  try {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    const values = answer.ok ? (await answer.json()).values : [];
    if (!Array.isArray(values)) return [];
    const texts = values.filter((one) => typeof one === "string" && one !== "");
    known.set(address, texts);
    return texts;
  } catch {
    return [];
  }
}

function show(field, options, token) {
  if (open?.field !== field) {
    close(false);
    const list = document.createElement("ul");
    list.className = "completion";
    list.id = `completion-${++created}`;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Completions");
    list.setAttribute("data-script", "");
    list.addEventListener("pointerdown", (e) => {
      e.preventDefault(); // keep focus in the field
      take([...list.children].indexOf(e.target.closest("li")));
    });
    field.after(list);
    open = { field, list };
  }
  Object.assign(open, { options, token, active: -1 });
  open.list.replaceChildren(...options.map((one, i) => {
    const item = document.createElement("li");
    item.id = `${open.list.id}-${i}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    item.textContent = one.trim();
    return item;
  }));
  field.setAttribute("aria-expanded", "true");
  field.setAttribute("aria-controls", open.list.id);
  field.removeAttribute("aria-activedescendant");
}

function close(forget = true) {
  if (forget) latest++;
  if (!open) return;
  open.field.setAttribute("aria-expanded", "false");
  open.field.removeAttribute("aria-controls");
  open.field.removeAttribute("aria-activedescendant");
  open.list.remove();
  open = null;
}

function highlight(index) {
  open.active = index;
  [...open.list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
  const item = open.list.children[index];
  open.field.setAttribute("aria-activedescendant", item.id);
  item.scrollIntoView({ block: "nearest" });
}

// take inserts a completion. After a name it suggests values.
function take(index) {
  const { field, options, token } = open;
  const text = options[index];
  if (text === undefined) return;
  const rest = text.endsWith(" ") ? field.value.slice(token.end).replace(/^\s/, "") : field.value.slice(token.end);
  field.value = field.value.slice(0, token.start) + text + rest;
  field.setSelectionRange(token.start + text.length, token.start + text.length);
  if (text.endsWith(":")) suggest(field, true);
  else close();
}

function onKey(e) {
  if (!e.target.matches?.("input[data-complete]") || e.isComposing || e.ctrlKey || e.altKey || e.metaKey) return;
  if (!open || open.field !== e.target) {
    if (e.key !== "ArrowDown") return;
    e.preventDefault();
    suggest(e.target, true);
    return;
  }
  const many = open.options.length;
  if (e.key === "ArrowDown") highlight((open.active + 1) % many);
  else if (e.key === "ArrowUp") highlight(open.active <= 0 ? many - 1 : open.active - 1);
  else if (e.key === "Escape") close();
  else if ((e.key === "Enter" && open.active >= 0) || (e.key === "Tab" && !e.shiftKey && (open.active >= 0 || open.token.typed))) take(Math.max(open.active, 0));
  else if (e.key === "Enter") return close();
  else return;
  e.preventDefault();
  e.stopPropagation();
}
