// Import: the file goes to the HTTP API, which says how far it is and what became of it.
(() => {
  "use strict";
  const line = (box, text, bad) => {
    const told = document.createElement("p");
    if (bad) { told.className = "notice bad"; told.setAttribute("role", "alert"); }
    told.textContent = text;
    box.append(told);
    return told;
  };
  // What an export holds, as people say it; the rest of its rows are counted together.
  const SAID = {
    messages: ["message", "messages"], sessions: ["session", "sessions"], digests: ["summary", "summaries"], records: ["record of what was learned", "records of what was learned"],
    state_keys: ["state key", "state keys"], series: ["series", "series"], series_entries: ["entry of series", "entries of series"], operations: ["change in the journal", "changes in the journal"],
  };
  const counted = (numbers) => {
    const told = Object.keys(SAID).filter((name) => numbers[name]).map((name) => `${numbers[name].toLocaleString("en")} ${SAID[name][numbers[name] === 1 ? 0 : 1]}`);
    const rest = Object.entries(numbers).filter(([name]) => !SAID[name]).reduce((sum, [, count]) => sum + count, 0);
    return [...told, ...(rest ? [`${rest.toLocaleString("en")} other rows`] : [])].join(", ");
  };
  const report = (box, done, journal) => {
    const verdicts = {};
    done.items.forEach((item) => { verdicts[item.verdict] = (verdicts[item.verdict] ?? 0) + 1; });
    const judged = Object.entries(verdicts).sort().map(([name, count]) => `${count.toLocaleString("en")} ${name}`).join(", ");
    const what = counted(done.rows) || judged || "nothing";
    const told = line(box, done.dry_run ? `Preview: ${what}. Nothing is stored yet.` : `Imported: ${what}. `);
    if (done.items.length) {
      const list = document.createElement("ul");
      list.className = "plain small";
      done.items.slice(0, 30).forEach((item) => {
        const row = document.createElement("li");
        row.textContent = `${item.verdict} ${item.kind} ${item.where}${item.why ? `: ${item.why}` : ""}`;
        list.append(row);
      });
      box.append(list);
    }
    done.doubts.slice(0, 10).forEach((doubt) => line(box, `${doubt.fault} ${doubt.items.join(", ")}: ${doubt.why}`));
    if (!done.dry_run) {
      const link = document.createElement("a");
      link.href = journal;
      link.textContent = "Open the journal";
      told.append(link);
    }
  };
  const failed = (form, box, code, text) => {
    const held = code === "conflict" && form.elements.replace;
    line(box, held ? `${form.dataset.user} has data already. Choose another user, or tick “Replace everything”.` : text, true);
  };
  const run = async (form, dry) => {
    const box = form.querySelector("[data-report]");
    box.replaceChildren();
    const state = line(box, "Reading the file…");
    const query = new URLSearchParams({ format: form.elements.format.value, dry_run: dry ? "true" : "false" });
    if (form.elements.replace?.checked) query.set("replace", "true");
    const headers = { Accept: "application/x-ndjson", "Content-Type": "application/octet-stream", "X-CSRF-Token": form.dataset.csrf };
    const response = await fetch(`${form.action}?${query}`, { method: "POST", body: form.elements.file.files[0], headers });
    if (!response.ok) {
      const problem = await response.json().catch(() => ({}));
      state.remove();
      failed(form, box, problem.code, problem.detail ?? `The server answered with ${response.status}.`);
      return;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      const lines = (rest + (value ?? "")).split("\n");
      rest = lines.pop();
      for (const said of lines.filter(Boolean).map((one) => JSON.parse(one))) {
        if (said.progress) state.textContent = `${said.progress.table}: ${said.progress.rows.toLocaleString("en")} rows`;
        else state.remove();
        if (said.error) failed(form, box, said.error.code, said.error.message);
        if (said.done) report(box, said.done, form.dataset.journal);
      }
      if (done) return;
    }
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("form[data-import]")) return;
    event.preventDefault();
    const buttons = [...form.querySelectorAll("button")];
    buttons.forEach((one) => { one.disabled = true; });
    run(form, event.submitter?.value === "true")
      .catch(() => line(form.querySelector("[data-report]"), "The server cannot be reached. Is it still running?", true))
      .finally(() => buttons.forEach((one) => { one.disabled = false; }));
  });
})();
