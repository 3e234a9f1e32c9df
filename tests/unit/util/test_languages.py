"""Guessing languages, and whether a question is about the speaker."""

from each import each

from reservoir_cli.util.languages import is_about_speaker


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
        ("", False),
    ],
)
def test_a_question_about_the_speaker_is_recognised_by_pronouns(question, about_speaker):
    assert is_about_speaker(question) is about_speaker
