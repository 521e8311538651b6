// The chat: an answer is shown while it comes. Without this script the form is posted, and the page comes back whole.
(() => {
  "use strict";
  const problem = (turn, text) => {
    const told = document.createElement("p");
    told.className = "notice bad";
    told.setAttribute("role", "alert");
    told.textContent = text;
    turn.querySelector("[data-answer]")?.closest(".said").replaceWith(told);
  };
  const took = (turn, line) => {
    if (line.text !== undefined) turn.querySelector("[data-answer]").textContent = line.text || "…";
    if (line.given !== undefined) turn.querySelector("[data-given]").innerHTML = line.given;
    if (line.error !== undefined) problem(turn, line.error.message);
    if (line.turn !== undefined) {
      const held = document.createElement("template");
      held.innerHTML = line.turn;
      const made = held.content.querySelector("article");
      turn.replaceWith(made);
      window.htmx?.process(made);
      made.scrollIntoView({ block: "nearest" });
    }
  };
  const told = async (turn, response) => {
    if (!response.ok || !response.headers.get("content-type")?.startsWith("application/x-ndjson")) {
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      problem(turn, page.querySelector("[data-problem]")?.textContent.trim() || `The server answered with ${response.status}.`);
      return;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      const lines = (rest + (value ?? "")).split("\n");
      rest = lines.pop();
      lines.filter(Boolean).forEach((line) => took(turn, JSON.parse(line)));
      if (done) return;
    }
  };
  const send = async (form) => {
    const field = form.elements.text;
    const body = new URLSearchParams(new FormData(form));
    const turn = document.getElementById("pending").content.cloneNode(true).querySelector("article");
    turn.querySelector("[data-said]").textContent = field.value;
    document.getElementById("no-turns")?.remove();
    document.querySelectorAll("#turns [data-fresh] details[open]").forEach((one) => { one.open = false; });
    document.getElementById("turns").append(turn);
    turn.scrollIntoView({ block: "nearest" });
    field.value = "";
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      await told(turn, await fetch(form.action, { method: "POST", body, headers: { Accept: "application/x-ndjson, text/html" } }));
    } catch {
      problem(turn, "The server cannot be reached. Is it still running?");
    } finally {
      button.disabled = false;
      field.focus();
    }
  };
  // The form sticks to the window: only the end of the page has the latest turn above it.
  if (!location.hash && document.getElementById("compose")) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-chat]")) return;
    event.preventDefault();
    if (event.target.elements.text.value.trim() && !event.target.querySelector("button").disabled) send(event.target);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches("form[data-chat] textarea")) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  });
})();
