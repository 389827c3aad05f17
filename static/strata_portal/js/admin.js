/*
 * Names for the fields of Django's own widgets that have none: cells of a tabular inline
 * are named by their column, the two halves of a date and the autocomplete box by the
 * label beside them.
 */

const name = (element, text) => {
    const words = text?.trim().replace(/:$/, "");
    if (words && !element.getAttribute("aria-label")) {
        element.setAttribute("aria-label", words);
    }
};

const nameCells = () => {
    for (const cell of document.querySelectorAll(".tabular tbody td")) {
        const column = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
        const fields = cell.querySelectorAll("input:not([type=hidden]), select, textarea");
        for (const field of fields) name(field, column?.textContent);
    }
    // The column of row titles has an empty head; an empty heading says nothing.
    for (const head of document.querySelectorAll(".tabular th.original")) {
        const cell = document.createElement("td");
        cell.className = "original";
        head.replaceWith(cell);
    }
};

const nameParts = () => {
    const boxes = ".datetime input, .select2-selection, .select2-selection__rendered";
    for (const part of document.querySelectorAll(`.flex-container :is(${boxes})`)) {
        const label = part.closest(".flex-container").querySelector("label, legend");
        name(part, label?.textContent);
    }
    for (const sign of document.querySelectorAll("span.help-tooltip[aria-label]")) {
        sign.setAttribute("role", "img");
    }
};

const nameAll = () => {
    nameCells();
    nameParts();
};

// The autocomplete boxes are made when jQuery is ready, the selectors on load.
window.django?.jQuery?.(nameAll);
addEventListener("load", nameAll);
document.addEventListener("formset:added", nameAll);
