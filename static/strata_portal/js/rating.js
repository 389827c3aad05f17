/*
 * Sends a rating without leaving the answer, and shows what the server asks next in its
 * place. Without this script, or where it fails, the form opens the rating's own page
 * with the same answer: the button that was pressed goes along.
 */

const send = async (form, button) => {
    const block = form.closest("[data-rating-block]");
    const body = new FormData(form, button);
    const answer = await fetch(form.action, {
        method: "POST",
        body,
        headers: { "X-Part": "rating" },
    });
    // Sent on, it is another page, such as the one to sign in.
    if (answer.redirected || (!answer.ok && answer.status !== 400)) {
        throw new Error(String(answer.status));
    }
    block.innerHTML = await answer.text();
    block.querySelector("#rating-title")?.focus();
};

document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-rating-block] [data-rating]") || "plain" in form.dataset) {
        return;
    }
    event.preventDefault();
    const button = event.submitter;
    send(form, button).catch(() => {
        form.dataset.plain = "";
        form.requestSubmit(button);
    });
});
