// Entry point of the console's scripts. Pages work without them for reading and single actions; they add live updates and shortcuts.
// Text from jobs and people is inserted as text, never as markup.

import * as autocomplete from "./autocomplete.js";
import * as charts from "./charts.js";
import * as copy from "./copy.js";
import * as forms from "./forms.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as palette from "./palette.js";
import * as prefs from "./prefs.js";
import * as rows from "./rows.js";
import * as times from "./times.js";

for (const part of [prefs, forms, rows, keys, palette, autocomplete, copy, charts, times, live]) {
  try {
    part.begin();
  } catch (problem) {
    console.error(problem); // a part that fails does not stop the others
  }
}
