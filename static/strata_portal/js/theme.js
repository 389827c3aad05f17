/*
 * The reader's choice of light or dark. A classic script in <head>, so that the first
 * paint is already right. Key and values are those of Django's admin.
 */
(() => {
    "use strict";

    const root = document.documentElement;
    const modes = ["auto", "light", "dark"];

    const remembered = () => {
        try {
            const mode = localStorage.getItem("theme");
            return modes.includes(mode) ? mode : "auto";
        } catch {
            return "auto"; // storage is blocked: the choice holds for this page
        }
    };

    const label = (button) => {
        const text = button.dataset[`label${root.dataset.theme}`];
        button.setAttribute("aria-label", text);
        button.title = text;
    };

    const set = (mode) => {
        root.dataset.theme = mode;
        document.querySelectorAll("[data-theme-toggle]").forEach(label);
    };

    set(remembered());

    // Another tab or the admin changed it.
    addEventListener("storage", (event) => {
        if (event.key === "theme") set(remembered());
    });

    document.addEventListener("DOMContentLoaded", () => {
        for (const button of document.querySelectorAll("[data-theme-toggle]")) {
            button.hidden = false;
            label(button);
            button.addEventListener("click", () => {
                const next =
                    modes[(modes.indexOf(root.dataset.theme) + 1) % modes.length];
                try {
                    localStorage.setItem("theme", next);
                } catch {
                    // Not remembered, still applied.
                }
                set(next);
            });
        }
    });
})();
