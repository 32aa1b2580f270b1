/** Loads the page's script. A file that the network lost would leave a dead page, so the page is then loaded again, a few times. */

const TRIES = 5, NAME = `tries ${location.pathname}`;
const script = document.querySelector("main")?.classList.contains("wide") ? "./present.js" : "./respond.js";

/** @returns {number} how often the page was loaded in vain */
function tries() {
  try {
    return Number(sessionStorage.getItem(NAME));
  } catch {
    return TRIES;
  }
}

try {
  await import(script);
  if (tries() && tries() < TRIES) sessionStorage.removeItem(NAME);
} catch (error) {
  const status = document.getElementById("status"), before = tries();
  if (status) status.textContent = before < TRIES ? "A file of this page did not arrive. It loads again." : "This page did not load in full. Please reload it.";
  if (before < TRIES) {
    sessionStorage.setItem(NAME, String(before + 1));
    setTimeout(() => location.reload(), 1000 * (0.5 + Math.random()));
  }
}
