// Dark colours live in one style sheet; the button decides for which media it counts.
const sheet = document.getElementById("dark");
const button = document.getElementById("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;

function show(theme) {
  sheet.media = theme === "dark" ? "screen" : "not all";
  document.documentElement.dataset.theme = theme;
  button.textContent = theme === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
}

const asked = new URLSearchParams(location.search).get("theme");
show(asked === "dark" || asked === "light" ? asked : prefersDark ? "dark" : "light");
button.hidden = false;
button.addEventListener("click", () =>
  show(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
