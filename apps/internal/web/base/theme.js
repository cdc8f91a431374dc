// Runs before the first paint, so that a chosen theme never flashes. The rest of the script of a page runs after it.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch { /* without storage, the theme follows the system */ }
})();
