// What the page does beyond links and forms: keys, theme, and errors of an action shown where the action was.
(() => {
  "use strict";
  const $ = (selector, from = document) => from.querySelector(selector);
  const root = document.documentElement;

  // -- theme: light, dark, or as the system says
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const toggleTheme = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("perdure-theme", root.dataset.theme); } catch { /* it holds for this page */ }
  };

  // -- rows: j and k go through them, Enter opens, x is the first action
  const rows = () => [...document.querySelectorAll("[data-rows] > *")].filter((row) => row.offsetParent !== null);
  let picked = null;
  const pick = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(picked);
    const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step))];
    picked?.classList.remove("picked");
    picked = next;
    picked.classList.add("picked");
    const link = $("a[href]", picked) || $("button", picked);
    link?.focus({ preventScroll: true });
    picked.scrollIntoView({ block: "nearest" });
  };

  const help = () => {
    const dialog = $("#keys");
    if (!dialog) return;
    if (dialog.open) dialog.close(); else dialog.showModal();
  };

  // -- keys
  let going = false;
  let timer = 0;
  const typing = (element) => element && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));
  const jump = (key) => {
    const link = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
    if (link) location.href = link.href;
  };
  const KEYS = {
    "/": () => { const field = $("#find-here") || $("#find"); field?.focus(); field?.select?.(); },
    "?": help,
    j: () => pick(1),
    k: () => pick(-1),
    n: () => { const field = $("[data-new]"); if (field) { const more = field.closest("details"); if (more) more.open = true; field.focus(); } },
    g: () => { going = true; clearTimeout(timer); timer = setTimeout(() => { going = false; }, 1500); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && typing(document.activeElement)) { document.activeElement.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || event.defaultPrevented) return;
    if (going) {
      going = false;
      event.preventDefault();
      jump(event.key);
      return;
    }
    const act = KEYS[event.key];
    if (act && !($("#keys")?.open && event.key !== "?")) {
      event.preventDefault();
      act();
    }
  });

  document.addEventListener("click", (event) => {
    const asked = event.target.closest?.("[data-do]");
    if (asked?.dataset.do === "theme") toggleTheme();
    if (asked?.dataset.do === "keys") help();
    if (asked?.dataset.do === "dismiss") asked.closest(".notice")?.remove();
    if (asked?.dataset.do === "copy") {
      const from = document.getElementById(asked.dataset.from);
      navigator.clipboard?.writeText(from?.textContent ?? "").then(() => { asked.textContent = "Copied"; }, () => {});
    }
  });
  // What takes a while says so.
  document.addEventListener("submit", (event) => {
    const button = event.target.dataset.busy && $("button", event.target);
    if (!button) return;
    button.textContent = event.target.dataset.busy;
    button.setAttribute("aria-busy", "true");
    setTimeout(() => { button.disabled = true; });
  });
  // Choosing is asking: a filter needs no button when there are scripts.
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (form?.matches("[data-asks]") && event.target.matches("select, [type=checkbox], [type=date], [type=radio]")) form.requestSubmit();
  });

  // -- a graph: what one points at stands out with all it is joined to
  const near = (event) => {
    const node = event.target.closest?.("[data-node]");
    const graph = event.target.closest?.("[data-graph]");
    document.querySelectorAll(".graph.focused").forEach((one) => {
      one.classList.remove("focused");
      one.querySelectorAll(".near").forEach((part) => part.classList.remove("near"));
    });
    if (!node || !graph) return;
    const joined = new Set([node.dataset.at]);
    graph.querySelectorAll("line").forEach((line) => {
      if (line.dataset.one !== node.dataset.at && line.dataset.other !== node.dataset.at) return;
      line.classList.add("near");
      joined.add(line.dataset.one).add(line.dataset.other);
    });
    graph.querySelectorAll("[data-node]").forEach((one) => one.classList.toggle("near", joined.has(one.dataset.at)));
    graph.classList.add("focused");
  };
  document.addEventListener("pointerover", near);
  document.addEventListener("focusin", near);

  // -- an action that fails leaves what was typed, and says why
  const say = (text) => {
    const page = $("#page");
    page?.querySelector(":scope > .notice")?.remove();
    const notice = document.createElement("div");
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    const told = document.createElement("p");
    told.textContent = text;
    notice.append(told);
    page?.prepend(notice);
    notice.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("htmx:after:request", (event) => {
    const ctx = event.detail.ctx;
    if (!ctx?.response || ctx.response.status < 400) return;
    event.preventDefault();
    const told = new DOMParser().parseFromString(ctx.text ?? "", "text/html").querySelector("[data-problem]");
    say(told?.textContent.trim() || `The server answered with ${ctx.response.status}.`);
  });
  document.addEventListener("htmx:error", () => say("The server cannot be reached. Is it still running?"));
  document.addEventListener("htmx:after:swap", () => { picked = null; });
})();
