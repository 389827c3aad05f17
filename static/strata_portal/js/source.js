/*
 * The page of one source: a replaced file brings its own time. What became of the source
 * is renewed by renewal.js.
 */

for (const form of document.querySelectorAll("form[data-file-time]")) {
    const file = form.querySelector('input[type="file"]');
    file.addEventListener("change", () => {
        const first = file.files[0];
        form.elements.modified.value = first ? String(first.lastModified) : "";
    });
}
