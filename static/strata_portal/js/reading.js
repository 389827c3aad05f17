/*
 * The page of a document: it comes to rest at the cited place, also when its address
 * does not say so, and the key of an element with data-key follows that link.
 */

const cited = document.getElementById("cited");
if (cited && !location.hash) cited.scrollIntoView({ behavior: "instant" });

document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, dialog[open]")) return;
    const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
    if (link) {
        event.preventDefault();
        link.click();
    }
});
