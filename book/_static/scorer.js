// Search: a page that is named for a word of the question comes first, or one that answers it under another name, then chapters; the
// package's names, and pages below others, come last. The other numbers are Sphinx's own.
const ALSO = { inspector: ["config", "json"], sheet: ["exam", "code"], glossary: ["notation", "symbols"], api: ["package", "speed"], "05_norm": ["sqrt", "d_model"] };
window["Scorer"] = {
  score: ([page, , , description, score]) => {
    const words = new URLSearchParams(location.search).get("q").toLowerCase().match(/\w+/g) ?? [];
    const name = page.split("/").pop();
    const named = words.some((word) => (word.length > 2 && name.includes(word)) || ALSO[name]?.includes(word)) ? 15 : 0;
    const kind = /^book\/\d/.test(page) ? 6 : /deeper|exercises/.test(page) ? -15 : 0;
    return score + named + kind - (description ? 25 : 0);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
