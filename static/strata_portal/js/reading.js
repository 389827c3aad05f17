/*
 * The page of a document: it comes to rest at the cited place, also when its address
 * does not say so; the outline shows where that is and makes room on a small screen.
 * The key of a link with data-key follows that link.
 */

const outline = document.querySelector(".split-outline");
const narrow = window.matchMedia("(max-width: 64em)").matches;
if (outline && narrow) outline.open = false;

const here = outline?.querySelector('[aria-current="location"]');
if (here && !narrow) {
    const above = here.getBoundingClientRect().top - outline.getBoundingClientRect().top;
    outline.scrollTop = above - outline.clientHeight / 3;
}

// What stands above may have become shorter, so a named place is looked for again.
const named = location.hash && document.getElementById(location.hash.slice(1));
const rest = named || (!location.hash && document.getElementById("cited"));
if (rest) {
    const settle = () => rest.scrollIntoView({ behavior: "instant" });
    settle();
    // A font that comes late breaks the lines above anew; whoever has begun to read in
    // the meantime is left where they are.
    const moved = new AbortController();
    for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
        addEventListener(kind, () => moved.abort(), { passive: true, signal: moved.signal });
    }
    document.fonts.ready.then(() => {
        if (!moved.signal.aborted) settle();
        moved.abort();
    });
}

document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, dialog[open]")) return;
    const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
    if (link) {
        event.preventDefault();
        link.click();
    }
});
