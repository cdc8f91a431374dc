// Runs before the first paint, so that elements that need scripts are visible from the start.
document.documentElement.classList.add("js");
