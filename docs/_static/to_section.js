/* Who comes from the search is shown the section that has most of the words, not the top of a long page. */
document.addEventListener("DOMContentLoaded", () => {
  if (window.location.hash) return;
  window.setTimeout(() => {  // after Sphinx has marked the words
    let best = null;
    let most = 0;
    for (const section of document.querySelectorAll("article section")) {
      const marks = [...section.querySelectorAll(".highlighted")].filter((mark) => mark.closest("section") === section);
      const words = new Set(marks.map((mark) => mark.textContent.toLowerCase()));
      const weight = words.size + (marks.some((mark) => mark.closest("h2, h3")) ? 0.5 : 0);
      if (weight > most) [best, most] = [section, weight];
    }
    if (best && best.parentElement.closest("section")) best.scrollIntoView();
  }, 50);
});
