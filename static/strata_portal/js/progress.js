/*
 * Live progress. Each element with data-progress-url and data-progress-id is one row;
 * rows with the same address are asked for together, GET <url>?id=1&id=2, answered
 *
 *   {"rows": {"1": {"state": "processing", "label": "Processing", "stage": "Reading",
 *                   "percent": 42, "message": "", "done": false}}}
 *
 * with texts in the reader's language. Inside a row these parts are filled where
 * present: data-progress="state", "stage", "bar" (a <progress>), "percent", "message".
 * A row is asked for until it is done; a row the answer lacks was deleted. When it
 * ends, the row dispatches "progress:done". Nothing is asked while the page is hidden.
 */

const SHORTEST_MS = 1000;
const LONGEST_MS = 15000;

const language = document.documentElement.lang || undefined;
const percentage = new Intl.NumberFormat(language, { style: "percent" });

const fill = (row, name, text) => {
    const part = row.querySelector(`[data-progress="${name}"]`);
    if (part && part.textContent !== text) part.textContent = text;
    return part;
};

const show = (row, news) => {
    const state = fill(row, "state", news.label);
    if (state) state.dataset.state = news.state;
    fill(row, "stage", news.done ? "" : news.stage);
    fill(row, "message", news.message);
    const known = Number.isFinite(news.percent) && !news.done;
    fill(row, "percent", known ? percentage.format(news.percent / 100) : "");
    const bar = row.querySelector('[data-progress="bar"]');
    if (bar) {
        bar.hidden = news.done;
        if (known) bar.value = news.percent;
        else bar.removeAttribute("value");
    }
};

const finish = (row, detail) => {
    delete row.dataset.progressUrl;
    row.dispatchEvent(new CustomEvent("progress:done", { bubbles: true, detail }));
};

const ask = async (url, rows) => {
    const address = new URL(url, document.baseURI);
    for (const row of rows) address.searchParams.append("id", row.dataset.progressId);
    const response = await fetch(address, { headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error(`${address.pathname}: ${response.status}`);
    const answer = (await response.json()).rows;
    for (const row of rows) {
        const news = answer[row.dataset.progressId];
        if (news) show(row, news);
        if (!news || news.done) finish(row, news ?? null);
    }
};

const waiting = () => {
    const groups = new Map();
    for (const row of document.querySelectorAll("[data-progress-url]")) {
        const url = row.dataset.progressUrl;
        groups.set(url, [...(groups.get(url) ?? []), row]);
    }
    return groups;
};

let pause = SHORTEST_MS;
let timer = 0;

const tick = async () => {
    timer = 0;
    const groups = waiting();
    if (groups.size === 0 || document.hidden) return;
    try {
        await Promise.all([...groups].map(([url, rows]) => ask(url, rows)));
        pause = SHORTEST_MS;
    } catch {
        // The server is away for a moment: ask less often, keep what is shown.
        pause = Math.min(pause * 2, LONGEST_MS);
    }
    timer = setTimeout(tick, pause);
};

/** Begin again after rows were added to the page. */
export const watch = () => {
    if (timer === 0) timer = setTimeout(tick, 0);
};

document.addEventListener("visibilitychange", watch);
watch();
