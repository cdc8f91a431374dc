// Charts are drawn by the server. What a shape stands for is read out beside its chart, while the pointer or focus is on it.

export function begin() {
  for (const name of ["pointerover", "focusin"]) document.addEventListener(name, read);
  for (const name of ["pointerout", "focusout"]) document.addEventListener(name, forget);
}

const shapeOf = (e) => e.target.closest?.("svg.chart [data-readout], svg.chart :has(> title)");

// placeOf is the nearest place for words around a chart.
function placeOf(shape) {
  let around = shape.closest("svg.chart").parentElement;
  for (let i = 0; around && i < 3; i++, around = around.parentElement) {
    const place = around.querySelector(".readout");
    if (place) return place;
  }
  return null;
}

function read(e) {
  const shape = shapeOf(e);
  const place = shape && placeOf(shape);
  if (!place) return;
  place.dataset.rest ??= place.textContent; // what stands there while nothing is pointed at
  place.textContent = shape.dataset.readout ?? shape.querySelector(":scope > title").textContent;
}

function forget(e) {
  const shape = shapeOf(e);
  const place = shape && placeOf(shape);
  if (place) place.textContent = place.dataset.rest ?? "";
}
