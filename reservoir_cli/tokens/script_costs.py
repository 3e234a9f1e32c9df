"""What characters beyond ASCII cost, in hundredths of a token, as measured. Data.

Each cost is the larger one of o200k_base and cl100k_base. ``COMMON`` was measured on the Universal
Declaration of Human Rights in all languages of a script, divided by its characters beyond ASCII.
``RANGES`` is the mean of the characters of each 64 code points, encoded alone, plus 3%: no merge
joins the letters of most scripts, so that a text costs what its characters do. Ranges of a similar
cost are joined; some are higher, so that random letters of a block are not estimated low.
"""

# ruff: noqa: RUF001 -- the letters of many scripts

#: Letters of scripts whose words are merged, and the cost of each in a text.
COMMON = {
    "‘’“”–—…•·°«»×→": 72,
    "、。，！？：；「」『』（）《》": 105,
    "Ӏӏ": 480,
    "абвгдежзийклмнопрстуфхцчшщъыьэюя": 58,
    "ёіїєґўјљњћђџѓќѕ": 110,
    "αβγδεζηθικλμνξοπρσςτυφχψω": 112,
    "άέήίόύώ": 120,
    "اأإآبتثجحخدذرزسشصضطظعغفقكلمنهويىئءؤة": 88,
    "پچژگکیےںہھٹڈڑ،": 150,
    "אבגדהוזחטיכלמנסעפצקרשתךםןףץ": 126,
    ("अआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलळवशषसह़ऽािीुूृॄेैोौ्ँंःािीुूृेैोौ्।"): 140,
    ("กขคงจฉชซญดตถทธนบปผฝพฟมยรลวศษสหอะัาำิีึืุูเแโใไ็่้์ๆ"): 108,
    (
        "あいうえおかがきぎくぐけげこごさざしじすずせぜそぞただちっつてでとどなに"
        "ぬねのはばぱひびぴふぶぷへべぺほぼぽまみむめもゃやゅゆょよらりるれろわを"
        "ん"
    ): 113,
    (
        "ァアィイゥウェエォオカガキギクグケゲコゴサザシジスズセゼソゾタダチッツテ"
        "デトドナニヌネノハバパヒビピフブプヘベペホボポマミムメモャヤュユョヨラリ"
        "ルレロワヲンヴ・ー"
    ): 130,
    ("ঀঁংঃঅআইঈউঊঋঌএঐওঔকখগঘঙচছজঝঞটঠডঢণতথদধনপফবভমযরলশষসহ়ঽািীুূৃৄেৈোৌ্ৎৗড়ঢ়য়ৠৡৢৣৰৱৼ৾"): 172,
    ("ஂஃஅஆஇஈஉஊஎஏஐஒஓஔகஙசஜஞடணதநனபமயரறலளழவஶஷஸஹாிீுூெேைொோௌ்ௐௗ"): 182,
    ("ഀഁംഃഄഅആഇഈഉഊഋഌഎഏഐഒഓഔകഖഗഘങചഛജഝഞടഠഡഢണതഥദധനഩപഫബഭമയരറലളഴവശഷസഹഺ഻഼ഽാിീുൂൃൄെേൈൊോൌ്ൎൔൕൖൗൟൠൡൢൣൺൻർൽൾൿ"): 192,
    ("កខគឃងចឆជឈញដឋឌឍណតថទធនបផពភមយរលវឝឞសហឡអឣឤឥឦឧឨឩឪឫឬឭឮឯឰឱឲឳ឴឵ាិីឹឺុូួើឿៀេែៃោៅំះៈ៉៊់៌៍៎៏័៑្៓ៜ៝"): 192,
}
#: The first code point of a range, and the cost of its other characters.
RANGES = (
    (0x0080, 160),
    (0x00C0, 150),
    (0x0100, 185),
    (0x0180, 205),
    (0x0400, 205),
    (0x0440, 155),
    (0x0480, 290),
    (0x0530, 215),
    (0x0640, 200),
    (0x0700, 218),
    (0x0800, 310),
    (0x0900, 210),
    (0x0B00, 305),
    (0x0BC0, 210),
    (0x0EC0, 310),
    (0x0F00, 210),
    (0x0F80, 310),
    (0x1000, 210),
    (0x1040, 310),
    (0x10C0, 210),
    (0x1100, 310),
    (0x17C0, 210),
    (0x1800, 310),
    (0x1E80, 195),
    (0x1EC0, 175),
    (0x1F00, 310),
    (0x2000, 180),
    (0x2040, 210),
    (0x20C0, 310),
    (0x2100, 205),
    (0x21C0, 310),
    (0x2200, 205),
    (0x2280, 310),
    (0x2440, 210),
    (0x2480, 310),
    (0x2500, 205),
    (0x2680, 310),
    (0x2700, 205),
    (0x27C0, 305),
    (0x3000, 260),
    (0x3040, 230),
    (0x3080, 260),
    (0x3100, 310),
    (0x3140, 210),
    (0x3180, 310),
    (0x4E00, 345),
    (0xA000, 310),
    (0xAC00, 340),
    (0xD800, 100),
    (0xF900, 310),
    (0xFE00, 205),
    (0xFE40, 310),
    (0xFF00, 180),
    (0xFF40, 205),
    (0x10000, 415),
    (0x11400, 310),
    (0x11440, 410),
    (0x11700, 310),
    (0x11740, 415),
    (0x14640, 400),
    (0x1B100, 310),
    (0x1B140, 415),
    (0x1D000, 310),
    (0x1E000, 415),
    (0x1E2C0, 310),
    (0x1E7C0, 405),
    (0x1F000, 310),
    (0x1F480, 210),
    (0x1F4C0, 310),
    (0x1F600, 210),
    (0x1F640, 310),
    (0x20000, 415),
)
#: Han and Hangul: a character in common use, by national standards, or any other.
COMMON_HAN, COMMON_HANGUL = 128, 146
