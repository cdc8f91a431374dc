// Copy buttons: [data-copy] copies its value, [data-copy-from="#id"] the text of that element.

const copiedTime = 2000;
const timers = new WeakMap(); // buttons that show "Copied", with their timers

export function begin() {
  document.addEventListener("click", async (e) => {
    const button = e.target.closest?.("[data-copy], [data-copy-from]");
    if (!button) return;
    const from = button.dataset.copyFrom;
    const text = from ? document.querySelector(from)?.textContent : button.dataset.copy;
    if (text !== undefined && await copyText(text)) showCopied(button);
  });
}

// copyText copies a text. It also works over plain HTTP, where browsers offer no clipboard API.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyWithSelection(text);
  }
}

function copyWithSelection(text) {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "visually-hidden";
  field.setAttribute("data-script", "");
  field.setAttribute("aria-hidden", "true");
  (focused?.closest("dialog[open]") ?? document.body).append(field); // outside an open dialog nothing can be selected
  field.select();
  let copied = false;
  try {
    copied = document.execCommand("copy");
  } catch {
    // not supported: the button keeps its label
  }
  field.remove();
  focused?.focus({ preventScroll: true });
  return copied;
}

// showCopied shows "Copied" on the button for two seconds.
function showCopied(button) {
  if (timers.has(button)) return;
  const texts = document.createTreeWalker(button, NodeFilter.SHOW_TEXT);
  let last = null;
  while (texts.nextNode()) if (texts.currentNode.nodeValue.trim()) last = texts.currentNode;
  if (!last) return;
  const words = last.nodeValue;
  last.nodeValue = "Copied";
  timers.set(button, setTimeout(() => {
    if (last.nodeValue === "Copied") last.nodeValue = words;
    timers.delete(button);
  }, copiedTime));
}
