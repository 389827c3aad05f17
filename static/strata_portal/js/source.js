/*
 * The page of one source. When its reading ends (progress.js), the parts with
 * data-renewed are asked for again; the form keeps what has been typed. A replaced file
 * brings its own time.
 */

const renew = async () => {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of document.querySelectorAll("[data-renewed]")) {
        const news = page.querySelector(`[data-renewed="${part.dataset.renewed}"]`);
        if (news) part.replaceWith(document.adoptNode(news));
    }
};

document.addEventListener("progress:done", renew);

for (const form of document.querySelectorAll("form[data-file-time]")) {
    const file = form.querySelector('input[type="file"]');
    file.addEventListener("change", () => {
        const first = file.files[0];
        form.elements.modified.value = first ? String(first.lastModified) : "";
    });
}
