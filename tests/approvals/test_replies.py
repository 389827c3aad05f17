"""What a reply says, whatever program wrote it."""

from email.message import EmailMessage

import pytest

from approvals.mailing import MARKER
from approvals.replies import Reply, above_quote, plain_text, read_mail, read_reply

QUOTE = f"> {MARKER}\n> The documents did not answer this question:\n> ..."


@pytest.mark.req("S2-APR-02")
def test_headings_stand_before_the_answer() -> None:
    reply = read_reply(
        "\nQuestion: How is a limit raised?\nkeep: help@bank.example\n"
        "Keep: +48 22 123 45 67\nLayer: Questions\n\nIn the branch.\nKeep: your card."
    )
    assert reply == Reply(
        answer="In the branch.\nKeep: your card.",
        question="How is a limit raised?",
        layer="Questions",
        kept=("help@bank.example", "+48 22 123 45 67"),
    )
    for text in ("Ignore: concerns one customer", "ignore:\n\nconcerns\none customer"):
        assert read_reply(text) == Reply(
            answer="", ignores=True, ignored_because="concerns one customer"
        )
    for text in ("Ignore", "Ignore:", " *Ignore!* "):
        assert (read_reply(text).ignores, read_reply(text).ignored_because) == (
            True,
            "",
        )
    assert not read_reply("Ignore letters without a stamp.").ignores
    for text in (" Approve.\n", "**Approved!**", "“approve”"):
        assert read_reply(text).approves
    assert not read_reply("Approve it in the branch.").approves
    assert not read_reply("Layer: x\nApprove").approves


@pytest.mark.req("REL-W6")
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("<p>In the <b>branch</b>.</p><script>alert(1)</script>", "In the branch."),
        ("<style>p{}</style><div>One</div><div>Two<br>Three</div>", "One\nTwo\nThree"),
        ("Fees < 5 and > 3 for <amount>", "Fees < 5 and > 3 for <amount>"),
        ("a\x00b\x07c\ud800", "abc"),
        ("in\u200bvisible \u202eright to left", "invisible right to left"),
        ("one  \r\n\r\n\r\n\r\ntwo", "one\n\ntwo"),
        ('<img src=x onerror="alert(1)">Yes', "Yes"),
        ("<svg><script>alert(1)</script></svg>Yes", "Yes"),
    ],
)
def test_what_comes_from_outside_is_plain_text(sent: str, kept: str) -> None:
    assert plain_text(sent) == kept


@pytest.mark.req("S2-APR-02")
@pytest.mark.parametrize(
    "below",
    [
        "",
        f"\n\n{QUOTE}",
        f"\n\nOn Mon, 30 Nov 2026 at 14:25, Strata <a@bank.example> wrote:\n{QUOTE}",
        f"\n\nOn Mon, 30 Nov 2026 at 14:25, Strata Portal\n<a@b.example> wrote:\n{QUOTE}",
        f"\n\npon., 30 lis 2026 o 14:25 Strata <a@bank.example> napisał(a):\n{QUOTE}",
        f"\n\nпн, 30 нояб. 2026 г. в 14:25, Strata <a@bank.example>:\n{QUOTE}",
        f"\n\nVào 14:25, Th 2, 30 thg 11, 2026 <a@bank.example> đã viết:\n{QUOTE}",
        f"\n\n-- \nAnna, branch 7\n\n{QUOTE}",
        f"\r\n\r\n> quoted\r\n> more\r\n{QUOTE}",
    ],
)
def test_only_what_is_above_the_quote_counts(below: str) -> None:
    answer = "In the branch:\nfrom nine to five."
    assert above_quote(answer + below, MARKER) == answer


def mail(**headers: str) -> EmailMessage:
    found = EmailMessage()
    for name, value in {
        "From": "Anna <Anna@Bank.example>",
        "To": "x@bank.example",
        "Cc": '"Replies" <replies+00@bank.example>',
        "Message-ID": "<1@bank.example>",
        **headers,
    }.items():
        found[name.replace("_", "-")] = value
    return found


def test_the_plain_part_is_read_first() -> None:
    both = mail()
    both.set_content("Tak, w oddziale.")
    both.add_alternative("<p>Other</p>", subtype="html")
    both.add_attachment(b"\x89PNG", maintype="image", subtype="png")
    read = read_mail(both.as_bytes(), MARKER)
    assert (read.sender, read.text) == ("anna@bank.example", "Tak, w oddziale.")
    assert read.recipients == ("x@bank.example", "replies+00@bank.example")
    assert read.message_id == "<1@bank.example>"
    assert not read.is_automatic
    only = mail()
    only.set_content(
        f"<p>Tak.</p><blockquote>{MARKER} old</blockquote>", subtype="html"
    )
    assert read_mail(only.as_bytes(), MARKER).text == "Tak."


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "auto-replied"},
        {"Precedence": "bulk"},
        {"Return_Path": "<>"},
    ],
)
def test_holiday_notices_and_bounces_are_automatic(headers: dict[str, str]) -> None:
    notice = mail(**headers)
    notice.set_content("I am away.")
    assert read_mail(notice.as_bytes(), MARKER).is_automatic


@pytest.mark.req("REL-W6")
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00\xff\xfe",
        b"Content-Type: text/plain; charset=none-such\r\n\r\nTak",
        b"Content-Type: multipart/mixed\r\n\r\nno boundary",
        b"From: \xff\xff\r\nTo: " + b"a" * 5000 + b"\r\n\r\nx",
        b"From: =?utf-8?q?=0A?=a]\r\nTo: a@[\r\n\r\nx",
        b"From: ..group:\xff=\r\nCc: \x00?=\r\nMessage-ID: <<=?utf-8?b?AA==?=\x00<>\r\n\r\nx",
        b'To: <"\r\nReturn-Path: (>\r\nAuto-Submitted: =?\r\n\r\nx',
        b"Content-Transfer-Encoding: base64\r\n\r\n!!!",
    ],
)
def test_no_mail_breaks_the_reader(raw: bytes) -> None:
    read = read_mail(raw, MARKER)
    assert isinstance(read.text, str)
    kept = [read.sender, read.message_id, *read.recipients]
    assert all(each.isprintable() for each in kept)
