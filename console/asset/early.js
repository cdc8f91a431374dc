// Runs before the page is shown: what needs a script is there from the first moment.
document.documentElement.classList.add("js");
