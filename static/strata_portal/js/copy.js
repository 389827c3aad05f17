/*
 * Copies the text of the element that a button names in data-copy, and says so for a
 * moment, also in the status that follows the button. Where the browser keeps the
 * clipboard to itself, the text is selected instead.
 */

const MOMENT = 2000;

const select = (source) => {
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
};

for (const button of document.querySelectorAll("[data-copy]")) {
    const source = document.getElementById(button.dataset.copy);
    const label = button.querySelector("span");
    const status = button.nextElementSibling;
    const usual = label.textContent;
    const say = (text) => {
        label.textContent = text || usual;
        status.textContent = text;
    };
    button.hidden = false;
    button.addEventListener("click", async () => {
        try {
            await navigator.clipboard.writeText(source.textContent);
        } catch {
            select(source); // no clipboard without https, or the person said no
            return;
        }
        say(button.dataset.copied);
        setTimeout(say, MOMENT, "");
    });
}
