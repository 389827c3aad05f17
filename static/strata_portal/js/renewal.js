/*
 * When something that is watched ends (progress.js), the parts of the page with
 * data-renewed are asked for again, each by its name; the rest, and what has been typed
 * in it, stays as it is.
 */

import { watch } from "./progress.js";

const renew = async () => {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of document.querySelectorAll("[data-renewed]")) {
        const news = page.querySelector(`[data-renewed="${part.dataset.renewed}"]`);
        if (news) part.replaceWith(document.adoptNode(news));
    }
    watch();
};

document.addEventListener("progress:done", renew);
