// Enhancements of the page's forms and links. Everything can be read without this file.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// Update results as the user types: one request at a time, the newest input wins.
function live(form) {
  const target = $(form.dataset.live);
  let busy = false, waiting = false, timer = 0;

  async function ask() {
    if (busy) { waiting = true; return; }
    busy = true;
    const query = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...query]) if (!value && name !== "q") query.delete(name);
    const address = `${form.getAttribute("action")}?${query}`;
    try {
      const answer = await fetch(`${address}&part=1`, { headers: { Accept: "text/html" } });
      const html = await answer.text();
      if (answer.status === 400) { warn(target, problemIn(html)); return; }
      replace(target, html, !answer.ok);
      sayInPause($(".count", target)?.textContent || target.textContent);
      settle(form, target);
      // The address changes after the new rows are painted, so that they do not wait for it.
      requestAnimationFrame(() => setTimeout(() => history.replaceState(null, "", address)));
    } catch {
      warn(target, "The server does not answer.");
    } finally {
      busy = false;
      if (waiting) { waiting = false; ask(); }
    }
  }

  // One request at a time keeps up with typing: a pause before it would only add to it.
  function askSoon() {
    clearTimeout(timer);
    timer = setTimeout(ask);
  }

  // A time, model or budget is complete when its field is left, or with Enter.
  const waits = (event) => event.target.matches("input:not([type=range], [data-search])");
  // Letters that an input method is still composing are not a question yet.
  form.addEventListener("input", (event) => { if (!event.isComposing && !waits(event)) askSoon(); });
  form.addEventListener("compositionend", (event) => { if (!waits(event)) askSoon(); });
  form.addEventListener("change", (event) => { if (waits(event)) askSoon(); });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); ask(); });
  target.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-without]");
    if (!link) return;
    event.preventDefault();
    form.elements.without.value = link.dataset.without;
    ask();
  });
  form.addEventListener("change", (event) => {
    if (event.target.name === "q" && form.elements.without) form.elements.without.value = "";
    // Another partition has other instances.
    if (event.target.name === "p" && form.elements.i) form.elements.i.value = "";
  });
  return ask;
}

// Announce a text: screen readers watch elements that were there before the text.
function say(text) { $("#said").textContent = text.replace(/\s+/g, " ").trim(); }

// Announce a result once the user pauses: each letter has one.
let pause = 0;
function sayInPause(text) { clearTimeout(pause); pause = setTimeout(say, 400, text); }

// Write above results why they are old. The next response replaces them.
function warn(target, why) {
  const said = $(":scope > .stale", target);
  const text = $(".empty", target) ? why : `${why} These are earlier results.`;
  if (said?.textContent === text) return;
  said?.remove();
  const notice = document.createElement("p");
  notice.className = "notice stale";
  notice.textContent = text;
  target.prepend(notice);
  say(text);
}

// Return the message of an error page as a sentence.
function problemIn(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  return `That did not work: ${$$(".card p", page).map((one) => one.textContent).join("; ")}.`;
}

// Show a response; details that were open stay open.
function replace(target, html, failed) {
  const opened = new Set($$("details[open][data-key]", target).map((one) => one.dataset.key));
  const answer = new DOMParser().parseFromString(html, "text/html");
  const fresh = failed ? [$(".card", answer) || answer.body] : [...answer.body.childNodes];
  const focused = target.contains(document.activeElement);
  target.replaceChildren(...fresh);
  for (const field of $$("template[data-slot]", target)) fill(field);
  for (const one of $$("details[data-key]", target)) if (opened.has(one.dataset.key)) one.open = true;
  enhance(target);
  if (focused) $(".notice [data-without], [data-row]", target)?.focus();
}

// Show the field of instances of another partition; a field that stays keeps its focus.
function fill(field) {
  const slot = document.getElementById(field.dataset.slot);
  if (slot.dataset.partition === field.dataset.partition) return;
  slot.dataset.partition = field.dataset.partition;
  slot.replaceChildren(field.content);
}

// Show the buttons that need this script, and load more of lists.
function enhance(root) {
  for (const list of $$("[data-more]", root)) loadMore(list);
  for (const button of $$("[data-copy], [data-copy-from]", root)) {
    const label = [...button.childNodes];
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        // Some browsers write only at once: what is fetched first is handed over as a promise.
        await navigator.clipboard.write([new ClipboardItem({ "text/plain": textToCopy(button) })]);
        button.textContent = "copied";
      } catch { button.textContent = "copy it by hand"; }
      setTimeout(() => { button.replaceChildren(...label); }, 1500);
    });
  }
}

async function textToCopy(button) {
  const { copy, copyFrom } = button.dataset;
  let text = copy && document.getElementById(copy).textContent;
  if (copyFrom) {
    const answer = await fetch(copyFrom);
    if (!answer.ok) throw new Error(answer.statusText);
    text = await answer.text();
  }
  return new Blob([text], { type: "text/plain" });
}

// Couple the budget's field with its logarithmic slider.
function budget(form) {
  const slider = $("[data-budget]", form), field = form.elements.budget;
  if (!slider) return;
  const least = 200, most = 128000, span = Math.log(most / least);
  const name = () => {
    const tokens = Number((field.value || field.placeholder).replaceAll(",", ""));
    slider.setAttribute("aria-valuetext", `${tokens.toLocaleString("en")} tokens`);
  };
  const moveSlider = () => {
    const value = Number((field.value || field.placeholder).replaceAll(",", ""));
    if (value > 0) slider.value = 1000 * Math.log(Math.max(least, value) / least) / span;
    name();
  };
  slider.hidden = false;
  moveSlider();
  slider.addEventListener("input", () => {
    const value = least * Math.exp(span * slider.value / 1000);
    field.value = Math.round(value / 100) * 100;
    name();
  });
  field.addEventListener("input", moveSlider);
  // The field has a rounded value: moving the slider there would undo its small steps.
  field.addEventListener("settle", () => { if (!field.value) moveSlider(); });
}

function sliders(form, ask) {
  const ranges = $$(".slider input[name][type=range]", form);
  const show = (range) => {
    const label = range.closest("label");
    $("output", label).textContent = Number(range.value);
    label.classList.toggle("moved", Number(range.value) !== Number(range.dataset.was));
  };
  for (const range of ranges) { show(range); for (const event of ["input", "settle"]) range.addEventListener(event, () => show(range)); }
  const reset = $("[data-reset]", form);
  if (!reset) return;
  reset.hidden = false;
  reset.addEventListener("click", (event) => {
    event.preventDefault();
    for (const range of ranges) { range.value = range.dataset.was; show(range); }
    form.elements.budget.value = "";
    ask();
  });
}

// Settings and the budget depend on the partition and the model: move the sliders that the user left alone.
function settle(form, answer) {
  const budget = form.elements.budget, available = $("[data-available]", answer);
  if (budget && available && !budget.value) budget.placeholder = available.value;
  budget?.dispatchEvent(new Event("settle"));
  for (const usual of $$("[data-usual]", answer)) {
    const range = form.elements[usual.dataset.usual], was = form.elements[`was-${usual.dataset.usual}`];
    if (Number(range.value) === Number(range.dataset.was)) range.value = usual.value;
    range.dataset.was = was.value = usual.value;
    range.dispatchEvent(new Event("settle"));
  }
}

// Load the next page of a list when its end comes into view.
function loadMore(list) {
  const seen = new IntersectionObserver(async (entries) => {
    // A busy browser hands over several states of the end at once: the last one holds.
    const next = entries.at(-1).isIntersecting && $$("nav.pages a[rel=next]").pop();
    if (!next) return;
    seen.disconnect();
    const pages = next.closest("nav");
    try {
      const answer = await fetch(next.href);
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const more = [...$("[data-more]", page).children];
      for (const row of more) { row.classList.add("later"); enhance(row); }
      // A month that goes on has its heading already.
      const last = $$("[data-month]", list).pop()?.dataset.month;
      if (last && more[0]?.dataset.month === last) more.shift();
      list.append(...more);
      const fresh = $$("nav.pages", page).pop();
      pages.replaceWith(fresh);
      if ($("a[rel=next]", fresh)) seen.observe(fresh);
    } catch { /* the link stays */ }
  }, { rootMargin: "600px" });
  const pages = $$("nav.pages").pop();
  if (pages) seen.observe(pages);
}

// Keys: / to search, j and k or the arrows from row to row.
function move(step) {
  const rows = $$("[data-row]");
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const to = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  rows[to].focus();
  rows[to].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input:not([type=range]), select, textarea");
  if (typing) {
    // Chromium would also clear a search field.
    if (event.key === "Escape") { event.preventDefault(); event.target.blur(); }
    return;
  }
  const onRow = document.activeElement.closest("[data-row]");
  const steps = { j: 1, k: -1, ...(onRow ? { ArrowDown: 1, ArrowUp: -1 } : {}) };
  if (event.key === "/") { event.preventDefault(); const field = $("[data-search]"); if (field) { field.focus(); field.select(); } else location.href = "/ui/"; }
  else if (event.key in steps) { event.preventDefault(); move(steps[event.key]); }
});

// Browsers keep earlier views for the back button: load them again after a deletion.
const loadedAt = Date.now();
if (new URLSearchParams(location.search).has("gone")) localStorage.setItem("deleted-at", loadedAt);
addEventListener("pageshow", (event) => {
  if (event.persisted && Number(localStorage.getItem("deleted-at")) > loadedAt) location.reload();
});

for (const form of $$("[data-live]")) {
  const ask = live(form);
  budget(form);
  sliders(form, ask);
}
for (const form of $$("[data-submit]")) form.requestSubmit();
enhance(document);
