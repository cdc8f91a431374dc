// Numbers and times for people. The server formats the first rows in the same way (format.go, page.go); a test compares the two.

/** bytes formats a size. */
export function bytes(n) {
  if (n < 1024) return n === 1 ? "1 byte" : `${n} bytes`;
  let value = n / 1024;
  let unit = "KB";
  for (const next of ["MB", "GB"]) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  const tenths = Math.floor(value * 10);
  return value < 10 && tenths % 10 !== 0 ? `${Math.floor(tenths / 10)}.${tenths % 10} ${unit}` : `${Math.floor(value)} ${unit}`;
}

/** age formats how long ago an instant was. */
export function age(instant, now = Date.now()) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(instant)) / 1000));
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${seconds - (seconds % 10)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  const days = Math.floor(seconds / 86400);
  return days === 1 ? "1 day ago" : `${days} days ago`;
}

/** until formats the time until an instant; "" when it is past. */
export function until(instant, now = Date.now()) {
  const seconds = Math.ceil((Date.parse(instant) - now) / 1000);
  if (seconds <= 0) return "";
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;
}

/** files formats a number of files. */
export function files(n) {
  return n === 1 ? "1 file" : `${n} files`;
}
