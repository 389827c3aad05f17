/*
 * The queue of pending questions:
 *   a, i, m, s, t   open what stands behind the letter ([data-key]): a form's first field
 *                   is reached, a button is pressed
 *   marks           what may be personal is marked in the text as one types; the server
 *                   finds it, here it is only drawn
 *   preview         the answer as it will be found
 *   lock            nobody else writes the same answer at the same time
 * Without this script the same is there after the form was sent.
 */

const PAUSE_MS = 250;
const RENEW_MS = 60_000;

const typing = (target) =>
    target.isContentEditable ||
    target.matches("textarea, select, input:not([type=checkbox], [type=radio])");

const open = (element) => {
    const menu = element.closest("details");
    if (menu) {
        for (const other of document.querySelectorAll("details.menu[open]")) {
            if (other !== menu) other.open = false;
        }
        menu.open = true;
        (menu.querySelector("[data-first]") ?? element).focus();
        return;
    }
    if (element.matches("button, a")) {
        element.click();
        return;
    }
    element.focus();
    element.scrollIntoView({ block: "nearest" });
};

document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && typing(event.target)) {
        event.target.blur();
        return;
    }
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    const element = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!element || element.disabled || element.closest("fieldset:disabled")) return;
    event.preventDefault();
    open(element);
});

const form = document.querySelector("form[data-answer]");

const send = (address, options = {}) =>
    fetch(address, { method: "POST", body: new FormData(form), ...options });

const fragment = async (response) =>
    new DOMParser().parseFromString(await response.text(), "text/html").body;

/* Marks */

const marks = form?.querySelector("[data-marks]");
let timer = 0;
let latest = 0;

const draw = (field) => {
    const back = field.parentElement.querySelector(".guarded-back");
    // The server counts characters, a string of this language counts halves of some.
    const letters = [...field.value];
    const spans = [...marks.querySelectorAll(`[data-in="${field.name}"]`)]
        .map(({ dataset }) => ({ start: +dataset.start, end: +dataset.end, kept: "kept" in dataset }))
        .sort((one, other) => one.start - other.start);
    const parts = [];
    let at = 0;
    for (const { start, end, kept } of spans) {
        if (start < at) continue;
        const mark = document.createElement("mark");
        mark.className = kept ? "guard is-kept" : "guard";
        mark.textContent = letters.slice(start, end).join("");
        parts.push(letters.slice(at, start).join(""), mark);
        at = end;
    }
    parts.push(`${letters.slice(at).join("")}\n`);
    back.replaceChildren(...parts);
    back.scrollTop = field.scrollTop;
};

const fields = form ? [...form.querySelectorAll(".guarded > textarea")] : [];

const look = async () => {
    const mine = ++latest;
    const response = await send(form.dataset.marksAddress).catch(() => null);
    if (!response?.ok || mine !== latest) return;
    const focused = document.activeElement?.closest("[data-marks]")
        ? document.activeElement.id
        : "";
    marks.replaceChildren(...(await fragment(response)).childNodes);
    for (const field of fields) draw(field);
    if (focused) document.getElementById(focused)?.focus();
};

const lookSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
};

for (const field of fields) {
    field.addEventListener("input", () => {
        // Until the server has looked again, marks at old places would mislead.
        field.parentElement.querySelector(".guarded-back").replaceChildren();
        lookSoon();
    });
    field.addEventListener("scroll", () => {
        field.parentElement.querySelector(".guarded-back").scrollTop = field.scrollTop;
    });
    draw(field);
}

marks?.addEventListener("change", lookSoon);
marks?.addEventListener("click", (event) => {
    const button = event.target.closest("[data-take-out]");
    if (!button) return;
    const words = button.dataset.takeOut;
    for (const field of fields) {
        field.value = field.value.replaceAll(words, "").replace(/ {2,}/gu, " ");
    }
    form.querySelector("[data-key=a]").focus();
    look();
});

/* Words in which it was asked, as another wording by which the answer is found */

const others = fields.find(({ name }) => name === "also_asked");
for (const button of document.querySelectorAll("[data-use-wording]")) {
    if (!others) break;
    button.hidden = false;
    button.addEventListener("click", () => {
        const lines = others.value.split("\n").filter((line) => line.trim());
        const words = button.dataset.useWording.replace(/\s+/gu, " ").trim();
        if (!lines.includes(words)) lines.push(words);
        others.value = lines.join("\n");
        others.dispatchEvent(new Event("input", { bubbles: true }));
        others.focus();
    });
}

/* Preview */

const preview = form?.querySelector("[data-preview]");
form?.querySelector("[data-preview-button]")?.addEventListener("click", async (event) => {
    event.preventDefault();
    const button = event.currentTarget;
    button.disabled = true;
    preview.ariaBusy = "true";
    const response = await send(form.dataset.previewAddress).catch(() => null);
    if (response?.ok) preview.replaceChildren(...(await fragment(response)).childNodes);
    preview.ariaBusy = "false";
    button.disabled = false;
});

/* Lock: from the first word on, renewed while one writes, given back on leaving */

const notice = form?.querySelector("[data-lock-notice]");
let held = false;
// Whether somebody else was quicker, after a first word was written here.
let waits = false;
let typedAt = 0;
let lockedAt = 0;

const lock = async () => {
    lockedAt = Date.now();
    const response = await send(form.dataset.lockAddress).catch(() => null);
    if (!response?.ok) return;
    const answer = await fragment(response);
    notice.replaceChildren(...answer.childNodes);
    held = !notice.querySelector("[data-locked]");
    waits = !held;
    form.querySelector("fieldset").disabled = !held;
};

form?.addEventListener("input", () => {
    typedAt = Date.now();
    // A page that is left open without a word must not keep others from answering.
    if (held && typedAt - lockedAt < RENEW_MS) return;
    held = true;
    lock();
});

setInterval(() => {
    if (waits || (held && typedAt > lockedAt)) lock();
}, RENEW_MS);

form?.addEventListener("submit", () => {
    held = false;
});

addEventListener("pagehide", () => {
    if (!held) return;
    const words = new FormData(form);
    words.set("unlock", "1");
    send(form.dataset.lockAddress, { body: words, keepalive: true });
});

/* The row that is open is seen in its list, and the part that it is in among the tabs. */
for (const shown of [".queue-items [aria-current]", ".queue-top .tabs [aria-current]"]) {
    document.querySelector(shown)?.scrollIntoView({ block: "nearest", inline: "nearest" });
}
