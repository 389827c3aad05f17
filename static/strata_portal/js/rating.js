/*
 * Sends a rating without leaving the answer, and shows what the server asks next in its
 * place. Without this script, or where it fails, the form opens the rating's own page.
 */

const send = async (form, button) => {
    const block = form.closest("[data-rating-block]");
    const body = new FormData(form, button);
    const answer = await fetch(form.action, {
        method: "POST",
        body,
        headers: { "X-Part": "rating" },
    });
    if (!answer.ok && answer.status !== 400) {
        throw new Error(String(answer.status));
    }
    block.innerHTML = await answer.text();
    block.querySelector("#rating-title").focus();
};

document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-rating-block] [data-rating]")) {
        return;
    }
    event.preventDefault();
    send(form, event.submitter).catch(() => form.submit());
});
