"""Sentences in five languages from which the mutation test builds passages and drafts.

For each kind of fact: two sentences for passages and two for drafts, `{}` standing for
the fact; and prose without a fact, to be quoted.
"""

PASSAGES: dict[str, dict[str, tuple[str, str]]] = {
    "en": {
        "duration": (
            "The supplier repairs a reported fault within {} of the report.",
            "Goods may be returned for {} after they were delivered.",
        ),
        "date": (
            "The new tariff applies from {} to all customers.",
            "The board adopted these rules on {} without a vote.",
        ),
        "amount": (
            "The annual fee comes to {} and is paid in advance.",
            "Damage up to {} is borne by the insured person.",
        ),
        "percent": (
            "Interest for late payment is {} a year.",
            "A discount of {} is granted to members.",
        ),
        "code": (
            "A rejected payment bears the reason {} in its message.",
            "The form {} is to be filled in before the visit.",
        ),
        "clause": (
            "Whoever relies on {} has to say so in writing.",
            "The exception of {} does not extend to subcontractors.",
        ),
        "iban": (
            "Deposits are paid to the account {} only.",
            "The account for donations is {} at the savings bank.",
        ),
    },
    "pl": {
        "duration": (
            "Dostawca usuwa zgłoszoną usterkę w ciągu {} od zgłoszenia.",
            "Towar można zwrócić przez {} po dostawie.",
        ),
        "date": (
            "Nowa taryfa obowiązuje od {} wszystkich klientów.",
            "Zarząd przyjął te zasady {} bez głosowania.",
        ),
        "amount": (
            "Opłata roczna wynosi {} i jest płatna z góry.",
            "Szkodę do kwoty {} ponosi ubezpieczony.",
        ),
        "percent": (
            "Odsetki za opóźnienie wynoszą {} rocznie.",
            "Członkom przysługuje zniżka {} od ceny.",
        ),
        "code": (
            "Odrzucona płatność ma w komunikacie kod {} jako powód.",
            "Formularz {} należy wypełnić przed wizytą.",
        ),
        "clause": (
            "Kto powołuje się na {}, czyni to na piśmie.",
            "Wyjątek, o którym mowa w {}, nie obejmuje podwykonawców.",
        ),
        "iban": (
            "Kaucję wpłaca się wyłącznie na rachunek {} najemcy.",
            "Rachunek do darowizn to {} w kasie oszczędności.",
        ),
    },
    "ro": {
        "duration": (
            "Furnizorul remediază defectul semnalat în {} de la sesizare.",
            "Marfa poate fi returnată timp de {} după livrare.",
        ),
        "date": (
            "Noul tarif se aplică de la {} tuturor clienților.",
            "Consiliul a adoptat aceste reguli la {} fără vot.",
        ),
        "amount": (
            "Taxa anuală este de {} și se plătește în avans.",
            "Paguba de până la {} este suportată de asigurat.",
        ),
        "percent": (
            "Dobânda de întârziere este de {} pe an.",
            "Membrii primesc o reducere de {} din preț.",
        ),
        "code": (
            "O plată respinsă poartă motivul {} în mesaj.",
            "Formularul {} se completează înainte de vizită.",
        ),
        "clause": (
            "Cine invocă {} trebuie să o facă în scris.",
            "Excepția de la {} nu îi privește pe subcontractanți.",
        ),
        "iban": (
            "Garanția se plătește numai în contul {} al asociației.",
            "Contul pentru donații este {} la casa de economii.",
        ),
    },
    "ru": {
        "duration": (
            "Поставщик устраняет заявленную неисправность за {} с момента заявки.",
            "Товар можно вернуть в течение {} после доставки.",
        ),
        "date": (
            "Новый тариф действует с {} для всех клиентов.",
            "Правление приняло эти правила {} без голосования.",
        ),
        "amount": (
            "Годовой взнос составляет {} и вносится вперёд.",
            "Ущерб на сумму до {} несёт застрахованный.",
        ),
        "percent": (
            "Пеня за просрочку составляет {} годовых.",
            "Участникам даётся скидка {} от цены.",
        ),
        "code": (
            "Отклонённый платёж несёт в сообщении причину {} отказа.",
            "Бланк {} заполняют до визита.",
        ),
        "clause": (
            "Кто ссылается на {}, делает это письменно.",
            "Исключение, названное в {}, не касается субподрядчиков.",
        ),
        "iban": (
            "Залог вносят только на счёт {} товарищества.",
            "Счёт для пожертвований: {} в сберегательной кассе.",
        ),
    },
    "vi": {
        "duration": (
            "Nhà cung cấp khắc phục sự cố trong {} kể từ khi được báo.",
            "Hàng có thể được trả lại trong {} sau khi giao.",
        ),
        "date": (
            "Biểu giá mới áp dụng từ {} cho mọi khách hàng.",
            "Hội đồng đã thông qua quy định này vào {} mà không biểu quyết.",
        ),
        "amount": (
            "Phí hằng năm là {} và được trả trước.",
            "Thiệt hại đến {} do người được bảo hiểm chịu.",
        ),
        "percent": (
            "Lãi chậm trả là {} mỗi năm.",
            "Thành viên được giảm {} trên giá bán.",
        ),
        "code": (
            "Khoản thanh toán bị từ chối mang lý do {} trong thông báo.",
            "Biểu mẫu {} phải được điền trước khi đến.",
        ),
        "clause": (
            "Người viện dẫn {} phải nói rõ bằng văn bản.",
            "Ngoại lệ tại {} không áp dụng cho nhà thầu phụ.",
        ),
        "iban": (
            "Tiền cọc chỉ được nộp vào tài khoản {} của hội.",
            "Tài khoản quyên góp là {} tại quỹ tiết kiệm.",
        ),
    },
}

DRAFTS: dict[str, dict[str, tuple[str, str]]] = {
    "en": {
        "duration": ("This takes {}", "The limit is {}"),
        "date": ("The day that counts is {}", "It happened on {}"),
        "amount": ("The sum is {}", "One pays {}"),
        "percent": ("The rate is {}", "It amounts to {}"),
        "code": ("Look for {}", "The sign of it is {}"),
        "clause": ("This follows from {}", "See {} for it"),
        "iban": ("Use {} for this", "The account is {}"),
    },
    "pl": {
        "duration": ("To trwa {}", "Termin to {}"),
        "date": ("Liczy się dzień {}", "Stało się to {}"),
        "amount": ("Suma to {}", "Płaci się {}"),
        "percent": ("Stawka to {}", "Jest to {}"),
        "code": ("Należy szukać {}", "Znakiem jest {}"),
        "clause": ("Wynika to z {}", "Zob. {} w tej sprawie"),
        "iban": ("Służy do tego {}", "Rachunek to {}"),
    },
    "ro": {
        "duration": ("Aceasta durează {}", "Termenul este de {}"),
        "date": ("Ziua care contează este {}", "S-a întâmplat la {}"),
        "amount": ("Suma este de {}", "Se plătesc {}"),
        "percent": ("Rata este de {}", "Este vorba de {}"),
        "code": ("Căutați {}", "Semnul este {}"),
        "clause": ("Aceasta rezultă din {}", "A se vedea {} pentru aceasta"),
        "iban": ("Folosiți {} pentru aceasta", "Contul este {}"),
    },
    "ru": {
        "duration": ("Это занимает {}", "Срок составляет {}"),
        "date": ("Важен день {}", "Это случилось {}"),
        "amount": ("Сумма равна {}", "Платят {}"),
        "percent": ("Ставка равна {}", "Речь идёт о {}"),
        "code": ("Надо искать {}", "Признаком служит {}"),
        "clause": ("Это следует из {}", "Об этом говорит {}"),
        "iban": ("Для этого служит {}", "Счёт таков: {}"),
    },
    "vi": {
        "duration": ("Việc này mất {}", "Thời hạn là {}"),
        "date": ("Mốc cần nhớ là {}", "Việc đó diễn ra vào {}"),
        "amount": ("Số tiền là {}", "Người ta trả {}"),
        "percent": ("Mức là {}", "Con số là {}"),
        "code": ("Hãy tìm {}", "Dấu hiệu là {}"),
        "clause": ("Điều này theo {}", "Hãy xem {} về việc này"),
        "iban": ("Hãy dùng {} cho việc này", "Tài khoản là {}"),
    },
}

QUOTED: dict[str, tuple[str, ...]] = {
    "en": (
        "The lessee must keep the rooms dry and may paint the walls.",
        "Members can leave the club whenever they wish to do so.",
        "Every visitor shall carry the badge where others can see it.",
    ),
    "pl": (
        "Najemca musi utrzymywać pokoje w suchości i może malować ściany.",
        "Członkowie mogą opuścić klub, kiedy tylko zechcą to uczynić.",
        "Każdy gość powinien nosić identyfikator tam, gdzie inni go widzą.",
    ),
    "ro": (
        "Chiriașul trebuie să păstreze camerele uscate și poate vopsi pereții.",
        "Membrii pot părăsi clubul oricând doresc să facă acest lucru.",
        "Orice vizitator trebuie să poarte ecusonul unde ceilalți îl pot vedea.",
    ),
    "ru": (
        "Наниматель обязан держать комнаты сухими и может красить стены.",
        "Члены клуба могут выйти из него, когда только пожелают.",
        "Каждый гость должен носить значок там, где другие его видят.",
    ),
    "vi": (
        "Người thuê phải giữ cho các phòng khô ráo và có thể sơn lại tường.",
        "Hội viên có thể rời câu lạc bộ bất cứ khi nào họ muốn.",
        "Mỗi khách đến thăm phải đeo thẻ ở chỗ người khác nhìn thấy.",
    ),
}

# What turns a sentence round, and words to put in the place of others.
NEGATIONS = {"en": "not", "pl": "nie", "ro": "nu", "ru": "не", "vi": "không"}
OTHER_WORDS = {
    "en": ("never", "seldom", "landlord", "window"),
    "pl": ("nigdy", "rzadko", "właściciel", "okno"),
    "ro": ("niciodată", "rareori", "proprietarul", "fereastra"),
    "ru": ("никогда", "редко", "хозяин", "окно"),
    "vi": ("đừng", "hiếm", "chủ", "cửa"),
}
QUOTATION_MARKS = {
    "en": ('"{}"', "“{}”", "‘{}’"),
    "pl": ('"{}"', "„{}”", "«{}»"),
    "ro": ('"{}"', "„{}”", "«{}»"),
    "ru": ('"{}"', "«{}»", "„{}“"),
    "vi": ('"{}"', "“{}”"),
}
