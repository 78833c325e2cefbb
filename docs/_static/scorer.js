/* Search: questions and answers come first, then errors and words; the reference of names and notebooks last. */
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    page === "faq" ? score + 20 : page === "troubleshooting" || page === "glossary" ? score + 15 : /^(reference|notebooks)\/|^design$/.test(page) ? score - 20 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
