// What scrolls sideways can be reached with the keyboard.
"use strict";
document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset .formula.alone, .md-typeset .formula.long, .md-typeset .drawing").forEach((each) => {
  each.tabIndex = 0;
});

// The search box has a name for those who hear the page.
document.querySelectorAll(".md-search[role=dialog]").forEach((each) => each.setAttribute("aria-label", "Search"));
