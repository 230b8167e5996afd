// Typeset the formulas that pymdownx.arithmatex marked: \( ... \) in a span, \[ ... \] in a div.
// Without scripts a reader sees their TeX source.
document.querySelectorAll(".arithmatex").forEach((element) => {
  const source = element.textContent.trim().slice(2, -2);
  katex.render(source, element, { displayMode: element.tagName === "DIV", throwOnError: false });
});
