// Buttons that copy: [data-copy] its value, [data-copy-from="#id"] the text of that element.

const saidFor = 2000;
const saying = new WeakMap(); // buttons that say "Copied": the timer that ends it

export function begin() {
  document.addEventListener("click", async (e) => {
    const button = e.target.closest?.("[data-copy], [data-copy-from]");
    if (!button) return;
    const from = button.dataset.copyFrom;
    const text = from ? document.querySelector(from)?.textContent : button.dataset.copy;
    if (text !== undefined && await copyText(text)) say(button);
  });
}

// copyText copies, also where the page came over plain HTTP and browsers offer no clipboard.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByHand(text);
  }
}

function copyByHand(text) {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "unseen";
  field.setAttribute("data-script", "");
  field.setAttribute("aria-hidden", "true");
  (focused?.closest("dialog[open]") ?? document.body).append(field); // outside of an open dialog nothing can be selected
  field.select();
  let copied = false;
  try {
    copied = document.execCommand("copy");
  } catch {
    // a browser that cannot: the button goes on saying what it does
  }
  field.remove();
  focused?.focus({ preventScroll: true });
  return copied;
}

// say has the button say "Copied" for a while, in place of its last words.
function say(button) {
  if (saying.has(button)) return;
  const texts = document.createTreeWalker(button, NodeFilter.SHOW_TEXT);
  let last = null;
  while (texts.nextNode()) if (texts.currentNode.nodeValue.trim()) last = texts.currentNode;
  if (!last) return;
  const words = last.nodeValue;
  last.nodeValue = "Copied";
  saying.set(button, setTimeout(() => {
    if (last.nodeValue === "Copied") last.nodeValue = words;
    saying.delete(button);
  }, saidFor));
}
