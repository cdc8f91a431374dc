// Shows the text of a chart element below the chart while the pointer or focus is on it. The server draws the charts.

export function begin() {
  for (const name of ["pointerover", "focusin"]) document.addEventListener(name, showReadout);
  for (const name of ["pointerout", "focusout"]) document.addEventListener(name, clearReadout);
}

const shapeOf = (e) => e.target.closest?.("svg.chart [data-readout], svg.chart :has(> title)");

// placeOf returns the nearest readout element around a chart.
function placeOf(shape) {
  let around = shape.closest("svg.chart").parentElement;
  for (let i = 0; around && i < 3; i++, around = around.parentElement) {
    const place = around.querySelector(".readout");
    if (place) return place;
  }
  return null;
}

function showReadout(e) {
  const shape = shapeOf(e);
  const place = shape && placeOf(shape);
  if (!place) return;
  place.dataset.rest ??= place.textContent; // the text without a hovered element
  place.textContent = shape.dataset.readout ?? shape.querySelector(":scope > title").textContent;
}

function clearReadout(e) {
  const shape = shapeOf(e);
  const place = shape && placeOf(shape);
  if (place) place.textContent = place.dataset.rest ?? "";
}
