/** @typedef {NodeListOf<HTMLElement>} Found elements of the page, all of which are HTML's */

// On paper the page is light: without its background the dark theme's text would be pale on white.
const page = document.documentElement.dataset;
let theme;
addEventListener("beforeprint", () => { theme = page.theme; page.theme = "light"; });
addEventListener("afterprint", () => { page.theme = theme; });

// docutils gives citations a role that ARIA has withdrawn; in a list they are its items.
document.querySelectorAll('[role="doc-biblioentry"]').forEach((entry) => entry.setAttribute("role", "listitem"));

// Icons say nothing: what they stand for is the button's or the link's name.
document.querySelectorAll("[class*='fa-']").forEach((icon) => icon.setAttribute("aria-hidden", "true"));

// A long formula or line of code scrolls in its box, which the keyboard must reach; the others are no stop on its way. The theme does
// that for code, but waits until all figures stand still.
const reach = () => /** @type {Found} */ (document.querySelectorAll(".math, pre, .cell_output > .output")).forEach((box) => {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
});
addEventListener("load", reach);
addEventListener("resize", reach);

// The theme scrolls the sidebar, even if the page's own line was in sight: now it scrolls only as far as it has to.
addEventListener("DOMContentLoaded", () => {
  document.getElementById("pst-primary-sidebar").scrollTop = 0;
  [...document.querySelectorAll(".bd-links .current")].at(-1)?.scrollIntoView({ block: "nearest" });
});

// To copy takes the focus off the button: it comes back, so that the keyboard goes on from there.
addEventListener("click", ({ target }) => /** @type {HTMLElement} */ (/** @type {Element} */ (target).closest(".copybtn"))?.focus());

// A table that can be sorted has a button in each header, which sorts upwards, then downwards; rows without a value come last.
const order = new Intl.Collator("en", { numeric: true });
for (const table of /** @type {NodeListOf<HTMLTableElement>} */ (document.querySelectorAll("table.sortable"))) {
  const [body] = table.tBodies;
  const headers = [...table.tHead.rows[0].cells];
  const sort = (column, upwards) => {
    /** @param {HTMLTableRowElement} row */
    const value = (row) => row.cells[column].dataset.value ?? "";
    body.append(...[...body.rows].sort((a, b) =>
      Number(!value(a)) - Number(!value(b)) || (upwards ? 1 : -1) * order.compare(value(a), value(b))));
  };
  headers.forEach((header, column) => {
    if (![...body.rows].some((row) => row.cells[column].dataset.value)) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const upwards = header.ariaSort !== "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", upwards ? "ascending" : "descending");
      sort(column, upwards);
    });
  });
}

// A prediction comes before its result: the cells after its box, and the paragraph that says what they show. These wait until
// one of the options is chosen, but the browser's search finds them, and an address that leads into them opens them. A living figure
// doesn't wait: it begins one step before the answer, and only its caption waits.
const predictions = [...document.querySelectorAll(".predict")].filter((box) => box.querySelector(".guess"));
const guessesOf = (box) => [...box.querySelectorAll(".guess")];
const frameOf = (box) => box.nextElementSibling; // which stands where the result will be
const alive = [...document.querySelectorAll("living-figure")].map((host) => document.getElementById(host.getAttribute("for")));
const [results, asked] = [new Map(), new Map()];
for (const box of predictions) {
  const parts = [];
  for (let part = box.nextElementSibling; part && !part.matches("section, h2, h3"); part = part.nextElementSibling) {
    parts.push(part);
    if (part.matches("p") && !part.querySelector("living-figure")) break;
  }
  const lives = (part) => alive.some((figure) => part.contains(figure));
  results.set(box, parts.filter((part) => !lives(part) && !part.matches("living-figure")));
  asked.set(box, parts.filter(lives));
}
const open = (box) => {
  box.classList.add("chosen");
  for (const part of results.get(box)) part.removeAttribute("hidden");
  for (const part of asked.get(box)) {
    part.classList.remove("asked");
    part.dispatchEvent(new Event("opened"));
  }
};
predictions.forEach((box, at) => {
  box.id = `prediction-${at + 1}`;
  box.insertAdjacentHTML("afterend", '<p class="waits"><span>The result. Choose above, or <button type="button">show it</button>.</span> </p>');
  frameOf(box).querySelector("button").addEventListener("click", () => open(box));
  for (const guess of guessesOf(box)) guess.addEventListener("toggle", () => open(box));
  for (const part of asked.get(box)) part.classList.add("asked");
  for (const part of results.get(box)) {
    part.classList.add("result");
    part.hidden = "until-found";
    part.addEventListener("beforematch", () => open(box));
  }
  box.classList.add("ready");
});
const linked = () => location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
const uncover = () => {
  const target = linked();
  const closed = target && target.closest(".result[hidden]");
  if (!closed) return;
  predictions.filter((box) => results.get(box).includes(closed)).forEach(open);
  target.scrollIntoView();
};
addEventListener("hashchange", uncover);
uncover();

// The game: its claims come one at a time, and each answer waits for a choice. At the end all of them are there, as on paper and
// without scripts, and a link holds the score in its fragment. An address that leads to an answer shows them all, too.
const game = document.querySelector(".claims");
const answers = [.../** @type {Found} */ (document.querySelectorAll(".claims ~ section figure"))];
const reveal = () => {
  game?.classList.add("all");
  for (const answer of answers) answer.hidden = false;
};
if (game) {
  const claims = [...game.querySelectorAll("li")];
  const count = claims.length;
  const [, sent] = location.hash.match(new RegExp(`^#([0-${count}])-of-${count}$`)) ?? [];
  game.insertAdjacentHTML("beforeend", '<p class="choice"><button type="button">True</button> <button type="button">False</button>'
    + ' <button type="button" class="quiet">Show me all</button></p><p class="score"><span role="status"></span>'
    + ' <button type="button" class="next"></button></p>');
  const [yes, no, all, next] = game.querySelectorAll("button");
  const status = game.querySelector("[role=status]");
  if (sent) status.textContent = `Whoever sent you here got ${sent} of ${count}.`;

  const truths = answers.map((answer) => answer.querySelector("figcaption strong").textContent.includes("True"));
  const said = [];
  const right = () => said.filter((is, at) => is === truths[at]).length;
  const choose = (is) => { for (const button of [yes, no]) Object.assign(button, { disabled: is !== null, ariaPressed: (button === yes) === is }); };
  const ask = () => {
    for (const parts of [claims, answers]) parts.forEach((part, at) => part.classList.toggle("now", at === said.length));
    answers[said.length].hidden = "until-found"; // its figure gets ready meanwhile
    choose(null);
    next.hidden = true;
  };
  const tell = (is) => {
    const at = said.push(is) - 1;
    answers[at].hidden = false;
    choose(is);
    status.textContent = `${is === truths[at] ? "Right" : "Wrong"}: it’s ${truths[at]}. ${right()} of ${at + 1} so far.`;
    Object.assign(next, { hidden: false, textContent: at + 1 < count ? "Next" : "Your score" });
    next.focus({ preventScroll: true });
    game.scrollIntoView(); // and the picture with it
  };
  const end = () => {
    reveal();
    claims.forEach((claim, at) => {
      const found = said[at] === truths[at] ? "and it is" : `but <a href="#${answers[at].id}">it’s ${truths[at]}</a>`;
      claim.insertAdjacentHTML("beforeend", `<small>You said it’s ${said[at]}, ${found}.</small>`);
    });
    const link = `${location.href.split(/[?#]/)[0]}#${right()}-of-${count}`;
    status.innerHTML = `You got ${right()} of ${count}; a coin gets ${count / 2} on average. <a href="${link}">This link</a> holds your score and nothing else.`;
    status.querySelector("a").focus({ preventScroll: true });
    game.scrollIntoView();
  };
  yes.addEventListener("click", () => tell(true));
  no.addEventListener("click", () => tell(false));
  all.addEventListener("click", () => {
    reveal();
    claims[0].focus();
  });
  next.addEventListener("click", () => {
    if (said.length === count) return end();
    ask();
    claims[said.length].focus({ preventScroll: true });
  });
  for (const [at, claim] of claims.entries()) Object.assign(claim, { value: at + 1, tabIndex: -1 }); // numbered though the others are hidden
  for (const answer of answers) answer.classList.add("result");
  ask();
  if (linked()) reveal();
  addEventListener("hashchange", () => linked() && reveal());
}
const openAll = () => {
  predictions.forEach(open);
  reveal();
};
if (new URLSearchParams(location.search).has("all")) openAll();

// Which chapters have been read, what was predicted, and which goals are reached: marked in the sidebar, counted at each chapter's
// end and on the first page, ticked in the summary. It is kept in one entry of this browser's storage and goes nowhere; where
// storage is refused, none of this is there.
const readable = [.../** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(".chapters a"))]; // chapters, and the pages below them
let storage;
try { storage = localStorage; } catch { /* refused */ }
if (storage && readable.length) {
  const ENTRY = "where-is-a-token";
  const root = new URL(page.content_root, location.href).pathname;
  const nameOf = ({ pathname }) => pathname.slice(root.length).replace(/\.html$/, "");
  const here = nameOf(location);
  const chapters = readable.filter((link) => link.matches(".chapters > ul > li > a"));

  const kept = () => {
    let entry;
    try { entry = JSON.parse(storage.getItem(ENTRY)); } catch { /* not ours, and written anew */ }
    const known = entry?.version === 1 && entry.read instanceof Object ? entry : { version: 1, read: {} };
    if (!(known.predicted instanceof Object)) known.predicted = {};
    if (!(known.reached instanceof Object)) known.reached = {};
    return known;
  };
  const store = (change) => {
    const entry = kept();
    change(entry);
    try { storage.setItem(ENTRY, JSON.stringify(entry)); } catch { /* full */ }
    show();
  };
  const keep = (what, value) => store((entry) => { entry[what][here] = value; });

  const progress = document.createElement("div");
  progress.className = "progress-so-far";
  progress.innerHTML = '<label><input type="checkbox"> I have read this page</label>'
    + '<p><span></span> <a></a> <button type="button">Forget</button></p>';
  const [tick, line, box] = [progress.querySelector("label"), progress.querySelector("p"), progress.querySelector("input")];
  const [count, next, forget] = [line.querySelector("span"), line.querySelector("a"), line.querySelector("button")];
  box.addEventListener("change", () => keep("read", box.checked));
  forget.addEventListener("click", () => {
    if (!confirm("Forget which chapters you have read, what you predicted, and which goals you have reached?")) return;
    storage.removeItem(ENTRY);
    show();
  });

  const goals = [.../** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll(".task-list-item-checkbox"))];
  for (const goal of goals) goal.addEventListener("change", () => keep("reached", [...goals.keys()].filter((at) => goals[at].checked)));

  const show = () => {
    const { read, reached } = kept();
    const isRead = (link) => read[nameOf(link)] === true;
    for (const link of readable) {
      link.querySelector(".read")?.remove();
      if (isRead(link)) link.insertAdjacentHTML("beforeend", ' <span class="read"><span class="visually-hidden">(read)</span></span>');
    }
    const done = chapters.filter(isRead).length;
    line.hidden = !done;
    count.textContent = `You have read ${done === chapters.length ? "all" : `${done} of`} ${chapters.length} chapters.`;
    const link = chapters[chapters.findLastIndex(isRead) + 1] ?? chapters.find((chapter) => !isRead(chapter));
    next.hidden = !link;
    if (link) {
      next.href = link.href;
      next.textContent = `Go on with chapter ${link.textContent.trim().replace(" ", ": ")}`;
    }
    box.checked = read[here] === true;
    goals.forEach((goal, at) => { goal.checked = [].concat(reached[here]).includes(at); });
    tell();
  };

  // The first choice counts. At the end the page says which of them held.
  const tally = document.createElement("p");
  tally.className = "tally";
  const tell = () => {
    const chosen = kept().predicted[here] ?? {};
    const listed = (yes) => predictions
      .filter((box) => chosen[box.id] !== undefined && yes === (guessesOf(box)[chosen[box.id]]?.querySelector("strong").textContent === "Yes."))
      .map((box) => `<a href="#${box.id}">${box.querySelector(".admonition-title").textContent.replace("Predict: ", "")}</a>`).join(", ");
    const [held, fell] = [listed(true), listed(false)];
    tally.innerHTML = [held && `Your predictions that held: ${held}.`, fell && `Your predictions that didn't hold: ${fell}.`].filter(Boolean).join(" ");
  };
  for (const box of predictions) {
    const before = guessesOf(box)[kept().predicted[here]?.[box.id]];
    if (before) before.open = true;
    guessesOf(box).forEach((guess, option) => guess.addEventListener("toggle", () => {
      const chosen = kept().predicted[here] ?? {};
      if (guess.open && chosen[box.id] === undefined) keep("predicted", { ...chosen, [box.id]: option });
    }));
  }

  // Who never wants to guess says so once; who changes their mind finds the way back in the same place.
  for (const box of predictions) {
    const always = document.createElement("button");
    always.type = "button";
    always.className = "always";
    frameOf(box).append(always);
    always.addEventListener("click", () => {
      store((entry) => { entry.all = !entry.all; });
      if (kept().all) showAll();
      else location.reload(); // closes what was open only because of this
    });
  }
  const showAll = () => {
    const all = kept().all === true;
    if (all) openAll();
    for (const box of predictions) {
      box.classList.toggle("always", all);
      frameOf(box).querySelector(".always").textContent = all ? "Let me guess first again" : "Always show everything";
    }
  };
  showAll();

  show();
  const end = document.querySelector(".onward");
  if (end && readable.some((link) => nameOf(link) === here)) {
    end.append(tally, progress);
    next.remove(); // the page's end leads on already
    // To come to the end is to have read the page, unless its reader has said otherwise.
    new IntersectionObserver((changes, observer) => {
      if (!changes.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      if (kept().read[here] === undefined) keep("read", true);
    }).observe(end);
  } else if (document.querySelector(".bd-sidenav__home-link .current")) {
    tick.remove();
    document.querySelector("article h1").after(progress);
  }
  addEventListener("storage", show); // another tab has written
  addEventListener("pageshow", show); // on the way back, too
}
