"""What characters beyond ASCII cost, in hundredths of a token, as measured. Data.

Each cost is the larger one of o200k_base and cl100k_base. In ``COMMON``, signs, kana, Han and
Hangul cost what they do alone; other letters were measured on the Universal Declaration of Human
Rights in all languages of a script, divided by its characters beyond ASCII. ``RANGES`` is the mean
of the characters of each 64 code points, encoded alone, plus 3%: no merge joins the letters of most
scripts, so that a text costs what its characters do. Some are higher, so that random letters of a
block are not estimated low.
"""

# ruff: noqa: RUF001 -- the letters of many scripts

#: Letters of scripts whose words are merged, and the cost of each in a text. Letters of Latin words
#: cost this beside what ``word_costs.txt`` says.
COMMON = {
    "ÁÂÃÇÉÔßãçćĐđęğıłńŐőœřśŞşšţűżžơưșȚțầẩậểỆỉợủ": 20,  # Latin
    "ÀÍáäéöąĚİťůạẢếố": 40,  # Latin
    "ÎÖåíóüčěŃŚŤūȘảấệỗờừ": 60,  # Latin
    "ÜêëúýþăĎźŽềịổộớụứửỮự": 80,  # Latin
    "ÄØÚàèîðôøāēĞĪīŔŠƯẠẬỊọỏỒữ": 100,  # Latin
    "ÓÙÝâæìñõûČģħĽŇŊŋŕŘŬồỘở": 120,  # Latin
    "ÑÛïùĀĂďĢĨĩķĹĻļņũŭŮŹŻƠǘǝȏắặẾỀỂỜỦỨỷ": 150,  # Latin
    "ÈÌÒÞòĄĆċĖėĘġĮįĺľŁňŜŢŲųǧẖẻỐỚỞỤỳỵ": 180,  # Latin
    "ÅÊËÕĈĉĜĝĵōŝŵƙƥƭṅṋṱẫằẳẵẹẽễỌỡỹ": 220,  # Latin
    "ÆƴḍḏḓḯḵḽṛṣṯẓẸ": 330,  # Latin
    "‘’“”–—…•·°«»×→¡£¥§©®±¶¿―„›※←↑↓─━═│║█░■►●★☆♥✔": 100,
    "、。，！？：；「」『』（）《》": 105,
    "Ӏӏ": 480,
    "абвгдежзийклмнопрстуфхцчшщъыьэюя": 52,
    "ёіїєґўјљњћђџѓќѕ": 110,
    "αβγδεζηθικλμνξοπρσςτυφχψω": 105,
    "άέήίόύώ": 120,
    "اأإآبتثجحخدذرزسشصضطظعغفقكلمنهويىئءؤة": 81,
    "پچژگکیےںہھٹڈڑ،": 150,
    "אבגדהוזחטיכלמנסעפצקרשתךםןףץ": 119,
    ("अआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलळवशषसह़ऽािीुूृॄेैोौ्ँंःािीुूृेैोौ्।"): 133,
    ("กขคงจฉชซญดตถทธนบปผฝพฟมยรลวศษสหอะัาำิีึืุูเแโใไ็่้์ๆ"): 108,
    (
        "あいうえおかがきくけこごさざしじすせそただちっつてでとどなにのはばまみめもやよらりるれろ"
        "わをんアィイウェエオカキクグコサシジスズセタダチッテデトドナニバパビピフブプペポマムメャ"
        "ュョラリルレロン・ー"
    ): 100,
    (
        "가간값개거게결경고공과구그글기나내는능니다당대도동되된드든들디라래러력로록료류른를름리만"
        "메면명목문미버번보복부분비사산상색생서성세션소수스습시식신아야어에여열오와요용우운원위으"
        "은을음의이인일임입자작장재적전정제져조주지진째체출치크태터턴트튼하한할함해호화환회"
    ): 100,
    (
        "一万三上下不与专业东两个中串为主么义之也书了事二于五些交产享京人亿今介从他付代以们件价任"
        "份企优会传但位体何余作你使例供価保信修倍值停像元先入全公共关其具内円册再写出击分列则初利"
        "别到制前力功加务动動包化北区十午华单南即历原去县参及友反发取变口只可台右号司合同名后向否"
        "含听启告员周命和品哈商問器四回因国图土在地场址型城基報場填增声处备复外多大天失头女好如始"
        "子字存学安宋完定实审客家容密对导将小少尔就局展山岁州工左已市布常平年并广序库应店度建开异"
        "式引张当录形影径待後得微心必志态思性总息您情意感成我或户所手打找技投报拉持指按换据排接推"
        "提播支收改放政效数整文料断新方族无日时明易星是時景更最月有服期木未本机权束条来板构析果查"
        "标样核格案检模次款止正此步歳段每比民気水求江汽没治法注活流海消清游源火点無然片版物特率环"
        "现球理生用由电男画界番登的监目直相省看県真知码确示社票私种科秒称移程稍税稿空立站章端笑符"
        "第等签简算管箱米类系素索约级线组经结给络统编网置美老考者而联能自至色节英藏行表装西要見见"
        "规视角解言計記話読计认议记论设证评试话询该详语误说请读调象责败账货购费资起超路身车转软载"
        "辑输达过运近还这进连述退送选通速造連道邮部都配释里重量金钟钮链销错键长開間関门闭问间队阳"
        "陆限院除雅集雷需非面音页项预频题额首验高黑"
    ): 100,
    ("ঀঁংঃঅআইঈউঊঋঌএঐওঔকখগঘঙচছজঝঞটঠডঢণতথদধনপফবভমযরলশষসহ়ঽািীুূৃৄেৈোৌ্ৎৗড়ঢ়য়ৠৡৢৣৰৱৼ৾"): 181,
    ("ஂஃஅஆஇஈஉஊஎஏஐஒஓஔகஙசஜஞடணதநனபமயரறலளழவஶஷஸஹாிீுூெேைொோௌ்ௐௗ"): 187,
    ("ഀഁംഃഄഅആഇഈഉഊഋഌഎഏഐഒഓഔകഖഗഘങചഛജഝഞടഠഡഢണതഥദധനഩപഫബഭമയരറലളഴവശഷസഹഺ഻഼ഽാിീുൂൃൄെേൈൊോൌ്ൎൔൕൖൗൟൠൡൢൣൺൻർൽൾൿ"): 192,
    ("កខគឃងចឆជឈញដឋឌឍណតថទធនបផពភមយរលវឝឞសហឡអឣឤឥឦឧឨឩឪឫឬឭឮឯឰឱឲឳ឴឵ាិីឹឺុូួើឿៀេែៃោៅំះៈ៉៊់៌៍៎៏័៑្៓ៜ៝"): 192,
}
#: What the other characters of each 64 code points cost, a digit of base 36 each, in 13 hundredths.
RANGES = (
    "cccceeggggggggggjfmmmhhhhhffhhhhoooollggggggnnnggggggggggggoggoogoogoooooooooooooooooooooo"
    "ooooogoooooooooooooooooooooooooofdooooeggogggoggooooooogooggggggoogggnnnnnnnnnnnnnnnnnnnnn"
    "nnnnnnnnnnnnkgggogoooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooo"
    "ooooooooooooooooooooooooooooooooooooooooooggggggggggngogggggggggggggoggggoooogggogggggggog"
    "oooooggggggoooogggggggggggnggoooggggggggoggoggggggggggggggogogoooooogggggggggggggggggoooog"
    "nngoooggoooogggoooggooogggggoooggoggggggggggggoggoggoooogggggoggggooogggggggoggoooooooogoo"
    "ooooogggoogggggoogggggggggggooooogggggggooogoooogoooooggggggggggggooggggoogoogoooooooooooo"
    "ooooogoogoooooooooooooooooooooooooooooooooooooooooooooooooggggogogggoooooooognggooooggogog"
    "googgoooooooooggggogogggoggooooggoggoogngooooooooogggggoooggoooooooooggggggggggogooogoggoo"
    "oooooogogooogoogooooooognggooooogogoooooooogooggoooooq888888888888888888888888888888888888"
    "888888888888888888888888888888888888888888888888888888888888888888888888888888888888888888"
    "888888oooooooooooooooooooogoooegggwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"
    "wwwwwwwwwwwwwwwwwwwwwwwwowwwwwwwwwwwowwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"
    "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"
    "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
    "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
    "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
    "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
    "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
    "vvvvvvvvvvvvvvvvvvvvvvowwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"
    "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwoooooooooooooooooooooooooooooooooo"
    "oooooooooooooooooooooooooooooowwwwwwwwwwwoooooooooooooooooooovvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
    "vvvvoooooooooooooooooogooooogooooooooooooooooooooooooooooooooooooooo"
)
