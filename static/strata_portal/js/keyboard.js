/*
 * Keys for daily work:
 *   /      to the search field, or to the search page where there is none
 *   ?      shows the keys (the dialog with id "keys")
 *   j, k   next and previous of the elements with data-item; Enter opens the link
 *   Esc    closes an open menu
 * A letter does nothing while someone types. Buttons with data-dialog="id" open that
 * dialog; [data-dialog-close] closes the one it stands in.
 */

const typing = (target) =>
    target.isContentEditable ||
    target.matches("textarea, select, input:not([type=checkbox], [type=radio])");

const toSearch = () => {
    const field = document.querySelector("[data-search], input[type=search]");
    if (field) {
        field.focus();
        field.select();
        return;
    }
    document.querySelector("a[data-search-link]")?.click();
};

const move = (step) => {
    const items = [...document.querySelectorAll("[data-item]")];
    if (items.length === 0) return;
    // Where nothing in the list has the focus, the one that is open counts.
    const focused = items.findIndex((item) => item.contains(document.activeElement));
    const here = focused < 0 ? items.findIndex((item) => item.ariaCurrent) : focused;
    const next =
        here < 0 ? (step > 0 ? 0 : items.length - 1)
                 : Math.min(Math.max(here + step, 0), items.length - 1);
    const item = items[next];
    (item.querySelector("[data-item-link], a[href]") ?? item).focus();
    item.scrollIntoView({ block: "nearest" });
};

const closeMenus = (except) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
        if (!menu.contains(except)) menu.open = false;
    }
};

const keys = {
    "/": toSearch,
    "?": () => document.getElementById("keys")?.showModal(),
    j: () => move(1),
    k: () => move(-1),
};

document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
        const menu = document.activeElement?.closest("details.menu[open]");
        closeMenus(null);
        menu?.querySelector("summary").focus();
        return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    const act = keys[event.key];
    if (act) {
        event.preventDefault();
        act();
    }
});

document.addEventListener("click", (event) => {
    closeMenus(event.target);
    const opener = event.target.closest("[data-dialog]");
    if (opener) document.getElementById(opener.dataset.dialog)?.showModal();
    // A click on the backdrop has the dialog itself as its target.
    if (event.target.matches("dialog")) event.target.close();
    event.target.closest("[data-dialog-close]")?.closest("dialog").close();
});

for (const opener of document.querySelectorAll("[data-dialog]")) opener.hidden = false;
