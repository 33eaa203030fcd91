// On paper the page is light: without its background the dark theme's text would be pale on white.
const page = document.documentElement.dataset;
let theme;
addEventListener("beforeprint", () => { theme = page.theme; page.theme = "light"; });
addEventListener("afterprint", () => { page.theme = theme; });

// docutils gives citations a role that ARIA has withdrawn; in a list they are its items.
document.querySelectorAll('[role="doc-biblioentry"]').forEach((entry) => entry.setAttribute("role", "listitem"));

// A long formula within a line scrolls in its box, which the keyboard must reach.
const reach = () => document.querySelectorAll("span.math").forEach((formula) => {
  if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
  else formula.removeAttribute("tabindex");
});
addEventListener("load", reach);
addEventListener("resize", reach);
