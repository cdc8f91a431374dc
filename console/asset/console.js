// The scripts of the console. Pages can be read and acted on without them: they make pages live and quicker to use, and nothing else.
// What others wrote reaches the page as text, never as markup.

import * as charts from "./charts.js";
import * as complete from "./complete.js";
import * as copy from "./copy.js";
import * as forms from "./forms.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as palette from "./palette.js";
import * as prefs from "./prefs.js";
import * as rows from "./rows.js";
import * as times from "./times.js";

for (const part of [prefs, forms, rows, keys, palette, complete, copy, charts, times, live]) {
  try {
    part.begin();
  } catch (problem) {
    console.error(problem); // one part that fails leaves the others their work
  }
}
