// Forms that change something are sent once, and those that ask for a number only with that number.

const sent = new Set(); // buttons that were disabled because their form was sent

export function begin() {
  document.addEventListener("input", (e) => {
    const form = e.target.closest?.("form[data-confirm-count]");
    if (form) confirm(form);
  });
  document.addEventListener("submit", onSubmit);
  document.addEventListener("renewed", confirmAll);
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

// confirm opens the way when the count is written. Separators are nobody's mistake. Ways back stay open: they are those that check nothing.
function confirm(form) {
  const digits = (text) => text.replace(/[\s.,'’_]/g, "");
  const field = form.querySelector("input[data-count]");
  if (!field) return;
  const right = digits(field.value) === digits(form.dataset.confirmCount);
  for (const button of submits(form)) {
    if (!button.formNoValidate && !sent.has(button)) button.disabled = !right;
  }
}

// onSubmit disables the buttons once the form is on its way: earlier, the one that was pressed would not be sent along.
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
