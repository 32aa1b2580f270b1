// What scrolls sideways can be reached with the keyboard.
"use strict";
document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset .arithmatex").forEach((each) => {
  each.tabIndex = 0;
});
