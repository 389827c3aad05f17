/*
 * Uploads. The form with data-upload sends each chosen or dropped file by itself, with
 * its path and its own time, shows how far it is, and then follows the source's state
 * (progress.js). Without scripts the form posts all files at once.
 */

import { watch } from "./progress.js";

const form = document.querySelector("form[data-upload]");
const input = form?.querySelector('input[type="file"]');
const list = form?.querySelector(".files");
const zone = form?.querySelector(".drop");

const AT_ONCE = 2;
const waiting = [];
let sending = 0;

const element = (name, className, text = "") => {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
};

const size = (bytes) => {
    const units = ["byte", "kilobyte", "megabyte"];
    const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 2);
    return new Intl.NumberFormat(document.documentElement.lang || undefined, {
        style: "unit", unit: units[step], maximumFractionDigits: step,
    }).format(bytes / 1000 ** step);
};

const rowOf = (path, file) => {
    const row = element("li", "file progress");
    const name = element("span", "file-name", path);
    const state = element("span", "state", form.dataset.wordWaiting);
    state.dataset.state = "pending";
    state.dataset.progress = "state";
    const stage = element("span", "");
    stage.dataset.progress = "stage";
    const bar = document.createElement("progress");
    bar.max = 100;
    bar.value = 0;
    bar.dataset.progress = "bar";
    bar.setAttribute("aria-label", path);
    const message = element("p", "error");
    message.dataset.progress = "message";
    row.append(name, element("span", "file-size", size(file.size)), state, stage, bar, message);
    list.append(row);
    return row;
};

const refuse = (row, sentence) => {
    const state = row.querySelector('[data-progress="state"]');
    state.textContent = form.dataset.wordRefused;
    state.dataset.state = "failed";
    row.querySelector('[data-progress="bar"]').hidden = true;
    row.querySelector('[data-progress="message"]').textContent = sentence;
};

const accept = (row, answer) => {
    const name = row.querySelector(".file-name");
    const link = element("a", "", name.textContent);
    link.href = answer.url;
    name.replaceChildren(link);
    const state = row.querySelector('[data-progress="state"]');
    state.textContent = answer.label;
    state.dataset.state = answer.state;
    row.dataset.progressId = answer.id;
    row.dataset.progressUrl = form.dataset.progressAddress;
    watch();
};

const begin = (row) => {
    const state = row.querySelector('[data-progress="state"]');
    state.textContent = form.dataset.wordSending;
    state.dataset.state = "processing";
};

const send = ({ path, file, row }) => {
    sending += 1;
    begin(row);
    const data = new FormData(form);
    data.delete("file");
    data.append("file", file);
    data.append("path", path);
    data.append("modified", String(file.lastModified));
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    const bar = row.querySelector('[data-progress="bar"]');
    request.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
    });
    request.addEventListener("loadend", () => {
        sending -= 1;
        if (request.status === 201) accept(row, request.response);
        else refuse(row, request.response?.error ?? form.dataset.wordLost);
        next();
    });
    request.send(data);
};

const next = () => {
    while (sending < AT_ONCE && waiting.length > 0) send(waiting.shift());
};

const take = (entries) => {
    for (const { path, file } of entries) {
        const row = rowOf(path, file);
        // The server would cut the connection, and could not say why.
        if (file.size > Number(form.dataset.mostBytes)) refuse(row, form.dataset.wordLarge);
        else waiting.push({ path, file, row });
    }
    next();
};

// A dropped folder is walked, so that each file keeps its path below it.
const walk = async (entry, prefix = "") => {
    if (entry.isFile) {
        const file = await new Promise((done, failed) => entry.file(done, failed));
        return [{ path: prefix + file.name, file }];
    }
    const reader = entry.createReader();
    const found = [];
    for (;;) {
        const batch = await new Promise((done, failed) => reader.readEntries(done, failed));
        if (batch.length === 0) break;
        for (const child of batch) found.push(...(await walk(child, `${prefix}${entry.name}/`)));
    }
    return found;
};

const chosen = () => {
    const files = [...input.files].map((file) => ({
        path: file.webkitRelativePath || file.name, file,
    }));
    input.value = "";
    return files;
};

if (form) {
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        input.setCustomValidity(input.files.length ? "" : form.dataset.wordNone);
        if (form.reportValidity()) take(chosen());
    });
    input.addEventListener("change", () => input.setCustomValidity(""));
    zone.addEventListener("dragover", (event) => {
        event.preventDefault();
        zone.classList.add("is-over");
    });
    zone.addEventListener("dragleave", () => zone.classList.remove("is-over"));
    zone.addEventListener("drop", async (event) => {
        event.preventDefault();
        zone.classList.remove("is-over");
        const entries = [...event.dataTransfer.items]
            .map((item) => item.webkitGetAsEntry?.())
            .filter(Boolean);
        const found = [];
        for (const entry of entries) found.push(...(await walk(entry)));
        input.setCustomValidity("");
        if (form.reportValidity()) take(found);
    });
}
