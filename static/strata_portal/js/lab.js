/*
 * The search lab: a change of the query or of a setting asks for the result again, a
 * moment after the last one. The form itself works without this script. Resting on a
 * passage lights it up in every list and in the picture.
 */

const PAUSE_MS = 200;

const form = document.querySelector("[data-lab]");
const result = document.querySelector("[data-lab-result]");
const save = document.querySelector("[data-lab-save]");
const said = document.querySelector("[data-lab-said]");

let timer = 0;
let running = null;

const show = (slider) => {
    const output = slider.closest(".slider").querySelector("output");
    output.value = slider.value;
    output.classList.toggle("is-changed", Number(slider.value) !== Number(slider.dataset.saved));
};

const asked = () => {
    const words = new URLSearchParams(new FormData(form));
    if (!words.get("reader")) words.delete("reader");
    return words;
};

const copyToSave = () => {
    if (!save) return;
    for (const field of save.querySelectorAll("input[type=hidden]:not([name=csrfmiddlewaretoken])")) field.remove();
    for (const [name, value] of new FormData(form)) {
        if (name === "q" || name === "reader") continue;
        const field = document.createElement("input");
        field.type = "hidden";
        field.name = name;
        field.value = value;
        save.append(field);
    }
};

const ask = async () => {
    running?.abort();
    running = new AbortController();
    const words = asked();
    history.replaceState(null, "", `?${words}`);
    words.set("part", "result");
    result.ariaBusy = "true";
    try {
        const response = await fetch(`?${words}`, { signal: running.signal });
        if (!response.ok) return;
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        result.replaceChildren(...page.body.childNodes);
        said.textContent = result.querySelector(".answer-status, [role=alert]")?.textContent ?? "";
    } catch (error) {
        if (error.name === "AbortError") return;
    }
    result.ariaBusy = "false";
};

const later = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
};

form.addEventListener("input", (event) => {
    if (event.target.type === "range") show(event.target);
    copyToSave();
    later();
});

form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    ask();
});

const light = (passage) => {
    for (const each of result.querySelectorAll(".is-lit")) each.classList.remove("is-lit");
    if (!passage) return;
    for (const each of result.querySelectorAll(`[data-passage="${CSS.escape(passage)}"]`)) {
        each.classList.add("is-lit");
    }
};

for (const name of ["mouseover", "focusin"]) {
    result.addEventListener(name, (event) => {
        light(event.target.closest("[data-passage]")?.dataset.passage);
    });
}
result.addEventListener("mouseleave", () => light(null));

for (const slider of form.querySelectorAll("input[type=range]")) show(slider);
