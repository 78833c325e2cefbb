/* Search: questions and answers come first, the reference of names last. */
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    page === "faq" ? score + 20 : page === "troubleshooting" ? score + 15 : page.startsWith("reference/") || page === "design" ? score - 20 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
