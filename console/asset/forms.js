// Prevents double submits, and enables confirmation forms only when the right number is typed.

const sent = new Set(); // buttons disabled because their form was submitted

export function begin() {
  document.addEventListener("input", (e) => {
    const form = e.target.closest?.("form[data-confirm-count]");
    if (form) confirm(form);
  });
  document.addEventListener("submit", onSubmit);
  document.addEventListener("refreshed", confirmAll);
  addEventListener("pageshow", () => {
    for (const button of sent) button.disabled = false;
    sent.clear();
    confirmAll();
  });
  confirmAll();
}

const submits = (form) => [...form.elements].filter((one) => one.type === "submit");

function confirmAll() {
  for (const form of document.querySelectorAll("form[data-confirm-count]")) confirm(form);
}

// confirm enables the submit buttons if the typed number is right, with or without separators. Buttons with formnovalidate stay enabled: they lead
// back.
function confirm(form) {
  const digits = (text) => text.replace(/[\s.,'’_]/g, "");
  const field = form.querySelector("input[data-count]");
  if (!field) return;
  const right = digits(field.value) === digits(form.dataset.confirmCount);
  for (const button of submits(form)) {
    if (!button.formNoValidate && !sent.has(button)) button.disabled = !right;
  }
}

// onSubmit disables the buttons after the form was submitted. Earlier, the value of the pressed button would not be sent.
function onSubmit(e) {
  const form = e.target;
  const how = e.submitter?.getAttribute("formmethod") ?? form.getAttribute("method") ?? "";
  if (e.defaultPrevented || how.toLowerCase() !== "post") return;
  setTimeout(() => {
    for (const button of submits(form)) {
      if (button.disabled) continue;
      button.disabled = true;
      sent.add(button);
    }
  });
}
