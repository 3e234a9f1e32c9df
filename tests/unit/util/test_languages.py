"""Guessing languages, their function words, and whether a question is about the speaker."""
# ruff: noqa: RUF001 - letters of other scripts

from each import each

from reservoir_cli.util.languages import (
    function_words,
    guess_language,
    is_about_speaker,
    is_function_word,
    language_of_function_words,
)


@each(
    ("question", "about_speaker"),
    [
        ("How many cards are in my gallery?", True),
        ("i forgot, which port?", True),
        ("Which port did we choose?", False),
        ("Which port does the US server use?", False),
        ("Was habe ich über die Katze gesagt?", True),
        ("Wie heißt das Dach über dem Eingang?", False),
        ("Quand est-ce que j'ai acheté la voiture ?", True),
        ("¿Cuándo compré el coche de mi hermana?", True),
        ("¿Cuándo fue la guerra en el norte?", False),
        ("Quali sono i vini che non sono dolci?", False),
        ("我喜欢什么电影?", True),
        ("我们决定了什么?", False),
        ("gdzie schowałam moje narty", True),
        ("куда я положила лыжи", True),
        ("куда делись лыжи из сарая", False),
        ("", False),
    ],
)
def test_a_question_about_the_speaker_is_recognised_by_pronouns(question, about_speaker):
    assert is_about_speaker(question) is about_speaker


@each(
    ("text", "language"),
    [
        ("Which of the two kettles did we return?", "en"),
        ("July 7 to 9 August", "en"),
        ("don't do it", "en"),
        ("Welchen der beiden Kessel haben wir zurückgegeben?", "de"),
        ("Laquelle des deux bouilloires avons-nous rendue ?", "fr"),
        ("¿Cuál de los dos hervidores devolvimos?", "es"),
        ("Quale dei due bollitori abbiamo restituito?", "it"),
        ("Qual das duas chaleiras nós devolvemos?", "pt"),
        ("Welke van de twee ketels hebben we teruggebracht?", "nl"),
        ("Vilken av de två kannorna har vi lämnat tillbaka?", "sv"),
        ("Który z tych czajników oddaliśmy do sklepu?", "pl"),
        ("Hangi çaydanlığı geri verdik ve neden?", "tr"),
        ("Какой из чайников мы вернули в магазин?", "ru"),
        ("Який із чайників ми повернули до крамниці?", "uk"),
        ("どのやかんを返しましたか", "ja"),
        ("我们退了哪个水壶", "zh"),
        ("Ποιον βραστήρα επιστρέψαμε;", "other"),
        # A single word that is also English, a name or a tool shows no language.
        ("restart pod", None),
        ("kafka over redis", None),
        ("sans serif", None),
        ("Ben Ten", None),
        ("404", None),
    ],
)
def test_a_language_is_guessed_by_function_words_and_scripts(text, language):
    assert guess_language(text) == language


@each(
    ("text", "kept", "dropped"),
    [
        ("Quando è arrivata Mia con la chiave?", "mia", "quando con la è"),
        ("dove ho messo la mia chiave?", "chiave", "dove mia la"),
        ("Wann hat der Will angerufen?", "will", "wann hat der"),
        ("Können Sie mir den Preis sagen?", "preis", "können sie mir den"),
        ("где живёт Моя?", "моя", "где"),
        ("welke deur gaat over de schuur", "deur", "welke over de"),
    ],
)
def test_a_name_that_equals_a_function_word_is_none(text, kept, dropped):
    words = function_words(text)
    assert set(dropped.split()) <= words
    assert words.isdisjoint(kept.split())


def test_single_words_that_mean_something_elsewhere_are_no_function_words():
    assert all(map(is_function_word, ("welchem", "chi", "каком", "który", "dónde")))
    assert not any(map(is_function_word, ("pod", "door", "one", "mia", "var", "kettle")))
    assert language_of_function_words(["ten"]) is None
    assert language_of_function_words(["ten", "jest"]) == "pl"
