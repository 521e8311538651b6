// Before anything is drawn: the theme that was chosen, if one was.
(() => {
  try {
    const chosen = localStorage.getItem("perdure-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* a browser that keeps nothing follows the system */ }
  document.documentElement.dataset.scripted = "";
})();
