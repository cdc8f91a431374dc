// Merges a newly rendered element into an existing one and keeps every node that still exists, so that focus, open details, ticked boxes,
// unfinished input and scroll positions stay.

// kept are attributes that the visitor controls once a page is shown.
const kept = new Set(["open", "checked", "selected", "data-current"]);

// same are attributes that identify an element. A link with another target is another link; a field with another name is another field.
const same = ["id", "data-row", "name", "type", "action", "href", "popovertarget", "data-copy"];

// merge changes was to look like is. It does not change is, so that it can be merged again.
export function merge(was, is) {
  if (was.isEqualNode(is)) return;
  if (was.nodeType !== Node.ELEMENT_NODE) {
    was.nodeValue = is.nodeValue;
    return;
  }
  mergeAttributes(was, is);
  mergeChildren(was, is);
}

function mergeAttributes(was, is) {
  for (const { name } of [...was.attributes]) {
    if (!is.hasAttribute(name) && !kept.has(name)) was.removeAttribute(name);
  }
  for (const { name, value } of is.attributes) {
    if (was.getAttribute(name) !== value && !kept.has(name)) was.setAttribute(name, value);
  }
}

// mergeChildren matches new children with old ones, removes the others, and moves only nodes whose position changed.
function mergeChildren(was, is) {
  const left = new Set([...was.childNodes].filter((one) => !added(one)));
  const named = new Map();
  for (const one of left) if (nameOf(one)) named.set(nameOf(one), one);
  const pairs = [];
  for (const fresh of is.childNodes) {
    const old = find(fresh, left, named);
    if (old) left.delete(old);
    pairs.push([old, fresh]);
  }
  for (const one of left) one.remove();
  let place = next(was.firstChild);
  for (const [old, fresh] of pairs) {
    if (!old) {
      was.insertBefore(document.importNode(fresh, true), place);
      continue;
    }
    if (old === place) place = next(place.nextSibling);
    else was.insertBefore(old, place);
    merge(old, fresh);
  }
}

// find returns the old node that matches a new one: by name if it has one, otherwise in order.
function find(fresh, left, named) {
  const name = nameOf(fresh);
  if (name) {
    const old = named.get(name);
    return old && left.has(old) && alike(old, fresh) ? old : null;
  }
  for (const old of left) if (alike(old, fresh)) return old;
  return null;
}

function nameOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.row || "" : "";
}

function alike(old, fresh) {
  if (old.nodeName !== fresh.nodeName) return false;
  return old.nodeType !== Node.ELEMENT_NODE || same.every((name) => old.getAttribute(name) === fresh.getAttribute(name));
}

// added reports whether a script added the node: the server does not render it.
function added(node) {
  return node.nodeType === Node.ELEMENT_NODE && node.hasAttribute("data-script");
}

function next(node) {
  while (node && added(node)) node = node.nextSibling;
  return node;
}
