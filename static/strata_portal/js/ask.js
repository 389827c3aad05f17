/*
 * The page for asking: Enter sends the question (Shift and Enter make a line), and a
 * numbered mark and its source light up together. All else, the live steps too, works
 * without this script.
 */

const question = document.querySelector("textarea[data-sends]");
question?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (question.value.trim()) question.form.requestSubmit();
});

const light = (number) => {
    for (const each of document.querySelectorAll("[data-cite].is-lit")) {
        each.classList.remove("is-lit");
    }
    if (!number) return;
    for (const each of document.querySelectorAll(`[data-cite="${CSS.escape(number)}"]`)) {
        each.classList.add("is-lit");
    }
};

for (const name of ["mouseover", "focusin"]) {
    document.addEventListener(name, (event) => {
        light(event.target.closest("[data-cite]")?.dataset.cite);
    });
}
