"""Words that people use in tables of answers, in English, German, Spanish and some in French.

In: a column name, a label or an answer. Out: what it usually stands for. Nothing here sees a table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_SIGNS = re.compile(r"[\W\d_]+")


def plain(text: object) -> str:
    """Return the letters of a text in lower case.

    Examples
    --------
    >>> plain("Matrikel-Nr. 2")
    'matrikelnr'
    """
    return _SIGNS.sub("", str(text).casefold())


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Columns that hold names of people, which two persons may share.
NAMES = _words(
    "name names nachname vorname surname lastname firstname fullname nombre nombres apellido "
    "apellidos alumno alumna estudiante schüler schueler schülerin pupil learner student students "
    "candidate kandidat examinee participantname"
)
#: Columns that tell persons apart.
IDS = _words(
    "id ids pid sid uid vp vpn vpnr case casenr fall fallnr fallnummer code kennung matrikel "
    "matrikelnr matrikelnummer matnr matriculation person personid respondent participant "
    "participantid teilnehmer teilnehmerin proband subject user username login userid studentid "
    "pupilid respondentid responseid resultid patient patientno patientid hhid idno identifier dni "
    "folio clave codigo código cuestionario token uuid email emailaddress mail correo interviewid "
    "caseid lehrling schülerid schuelerid schülernr testperson persönlichercode sisid "
    "studentnumber studentno candidateno candidatenumber zeichen initials kürzel"
)
#: Columns of a long table that hold items, answers, and language models as persons.
ITEMS = _words("item items question questions frage aufgabe pregunta statement problem task prompt")
ANSWER_NAMES = _words(
    "answer response rating score correct iscorrect value wert antwort respuesta puntaje punkte "
    "result outcome ergebnis resultado"
)
MODELS = _words("model modelname llm system")
#: Columns that number the rows.
NUMBERS = _words(
    "nr no num number nummer lfd lfdnr laufnr laufnummer index row zeile número numero"
)
#: Columns that part persons into groups.
GROUPS = _words(
    "sex gender geschlecht geschl sexo género genero group gruppe grupo class klasse clase curso "
    "grade grades jahrgang stufe klassenstufe school schule escuela colegio country land país pais "
    "language sprache idioma form booklet heft testheft version región region bundesland state "
    "teacher lehrer lehrkraft site section course kurs cohort kohorte condition bedingung semester "
    "schulform ethnicity education bildung abschluss beruf treatment arm wave welle female male "
    "weiblich männlich mujer hombre department abteilung departamento institution"
)
AGES = _words("age alter edad birthyear geburtsjahr yearofbirth ageinyears")
#: Sums, means and marks, as columns or as rows.
TOTALS = _words(
    "total totals totalscore gesamt gesamtpunkte gesamtpunktzahl insgesamt sum sums summe summen "
    "suma puntos puntaje puntuación puntuacion points pointspossible punkte punktzahl score scores "
    "rawscore finalscore mark marks percent prozent percentage percentcorrect porcentaje average "
    "averages mean means mittelwert mittel durchschnitt media promedio moyenne somme "
    "overallaverage classaverage overallmean richtig anzahlrichtig correctanswersn note noten nota "
    "finalgrade grade result resultat ergebnis numcorrect ncorrect nincorrect numincorrect sd "
    "stdev median maxpoints maxpunkte possiblepoints anzahlfalsch aciertos errores fallos"
)
#: Labels of rows of totals: narrower than names of columns, because Max and Mark are people.
SUMMARIES = _words(
    "total totals totalscore gesamt gesamtpunkte insgesamt sum sums summe summen suma percent "
    "prozent percentcorrect average averages mean means mittelwert mittel durchschnitt media "
    "promedio moyenne somme overallaverage classaverage overallmean anzahlrichtig richtig sd stdev "
    "median maxpoints maxpunkte maximalpunkte pointspossible possiblepoints difficulty "
    "schwierigkeit klassenschnitt lösungsquote quote proportion solutionrate lösungshäufigkeit "
    "trennschärfe"
)
#: Labels of the row with the right answers.
KEYS = _words(
    "key answerkey keys solution solutions answers correct correctanswer correctanswers lösung "
    "lösungen loesung musterlösung schlüssel lösungsschlüssel clave respuestacorrecta "
    "respuestascorrectas solución solucion soluciones corrigé corrige richtigeantwort "
    "richtigeantworten"
)


def is_label(word: object) -> bool:
    """Say whether a word names a key or totals rather than a person."""
    return plain(word) in KEYS or plain(word) in SUMMARIES


#: Columns that number the attempts of a person.
ATTEMPTS = _words("attempt attempts attemptnumber attemptno try versuch intento tentative")
#: Columns about the survey itself, not about answers.
ABOUT = ATTEMPTS | _words(
    "startdate enddate status progress durationinseconds duration finished recordeddate ipaddress "
    "recipientlastname recipientfirstname recipientemail externalreference locationlatitude "
    "locationlongitude distributionchannel userlanguage timestamp marcatemporal zeitstempel date "
    "datum fecha time zeit hora comment comments kommentar bemerkung bemerkungen anmerkung note_ "
    "remarks weight gewicht gewichtung peso started completed begonnen beendet dauer submitdate "
    "lastpage startlanguage seed interviewdate testtermin"
)
#: What is written where somebody gave no answer.
NO_ANSWER = frozenset(
    ["n/a", "na", "n.a.", "-", "--", "---", "–", "—", "?", "#n/a", "none", "missing", "(missing)",
     "(blank)", "blank", "invalid", "omitted", "omit", "skipped", "absent", "no answer",
     "no response", "not answered", "not reached", "not administered", "not applicable",
     "not presented", "don't know", "dont know", "do not know", "refused", "prefer not to say",
     "prefer not to answer", "k.a.", "k. a.", "ka", "keine angabe", "keine antwort",
     "keine angaben", "fehlend", "fehlt", "ausgelassen", "nicht erreicht", "nicht bearbeitet",
     "nicht beantwortet",
     "nicht vorgelegt", "weiß nicht", "weiss nicht", "entfällt", "ns/nc", "nsnc", "ns", "nc",
     "no contesta", "no sabe", "no sabe/no contesta", "sin respuesta", "no aplica", "no responde",
     "abs", "abs.", "abwesend", "ausente", "krank", "ne sait pas", "je ne sais pas", "nsp",
     "sans réponse", "non réponse", "non so", "não sei", "weet niet", "geen antwoord"]
)  # fmt: skip


def is_no_answer(word: str) -> bool:
    """Say whether a text stands for no answer, with or without its number.

    Examples
    --------
    >>> is_no_answer("9 - No answer"), is_no_answer("3 - Neutral")
    (True, False)
    """
    return re.sub(r"^\d+ *[-=:.)] *", "", word.lower()) in NO_ANSWER


def _rank(scale: str) -> dict[str, int]:
    """Return ranks of texts: a sign between the lower and the higher, synonyms between bars."""
    ranks = enumerate(" ".join(scale.split()).split(" < "))
    return {word.strip(): rank for rank, words in ranks for word in words.split("|")}


_SCALES = """
wrong | incorrect | false | fail | failed | falsch | inkorrekt | nicht gelöst
| nicht bestanden | incorrecto | incorrecta | mal | f | unsolved | unwahr | ungelöst
| not correct | not right | not solved | nicht korrekt | nicht richtig | ✗ | ✘ | ☒ | ❌ | ×
| x < right | correct | true | pass | passed | richtig | korrekt | gelöst | bestanden
| correcto | correcta | bien | r | solved | wahr | ✓ | ✔ | ☑ | ✅ | √

no | nein | n | non | nee | não < maybe | unsure | not sure | vielleicht | unsicher | quizás
| tal vez | teilweise | sometimes | uncertain | peut-être < yes | ja | sí | si | y | j | oui
| sì | sim

strongly disagree | completely disagree | totally disagree | disagree strongly
| fully disagree | disagree completely < disagree | mostly disagree | generally disagree
| disagree moderately < somewhat disagree | slightly disagree | tend to disagree
| rather disagree | disagree a little | partly disagree | disagree somewhat
< neither agree nor disagree | neutral | neither | undecided | neither disagree nor agree
| unsure | no opinion < somewhat agree | slightly agree | tend to agree | rather agree
| agree a little | partly agree | agree somewhat < agree | mostly agree | generally agree
| agree moderately < strongly agree | completely agree | totally agree | agree strongly
| fully agree | agree completely

stimme gar nicht zu | stimme überhaupt nicht zu | stimme absolut nicht zu | lehne stark ab
| lehne völlig ab | stimmt überhaupt nicht | stimmt gar nicht | stimmt nicht
< stimme nicht zu | lehne ab | stimmt überwiegend nicht < stimme eher nicht zu
| lehne eher ab | stimme weniger zu | stimmt eher nicht | stimmt kaum | stimmt wenig
< teils/teils | teils teils | teils-teils | teils, teils | weder noch | neutral
| unentschieden | weder/noch | stimmt teilweise | stimme teilweise zu | stimme teils zu
< stimme eher zu | stimmt eher | stimme überwiegend zu | stimmt überwiegend | stimmt ziemlich
< stimme zu | stimmt < stimme voll zu | stimme voll und ganz zu | stimme völlig zu
| stimme sehr zu | stimme vollkommen zu | stimmt genau | stimmt völlig | stimmt voll und ganz
| stimmt vollkommen

trifft gar nicht zu | trifft überhaupt nicht zu < trifft nicht zu < trifft eher nicht zu
| trifft kaum zu | trifft wenig zu | trifft weniger zu < teils/teils | teils teils
| teils-teils | weder noch | trifft teilweise zu | trifft mittelmäßig zu < trifft eher zu
| trifft überwiegend zu | trifft ziemlich zu < trifft zu < trifft voll zu
| trifft voll und ganz zu | trifft völlig zu | trifft sehr zu | trifft genau zu

totalmente en desacuerdo | muy en desacuerdo | completamente en desacuerdo < en desacuerdo
< algo en desacuerdo | parcialmente en desacuerdo | ligeramente en desacuerdo
< ni de acuerdo ni en desacuerdo | neutral | indiferente | indeciso
| ni acuerdo ni desacuerdo < algo de acuerdo | parcialmente de acuerdo
| ligeramente de acuerdo < de acuerdo < totalmente de acuerdo | muy de acuerdo
| completamente de acuerdo

pas du tout d'accord | pas d'accord du tout < pas d'accord < plutôt pas d'accord
< ni d'accord ni pas d'accord | neutre | sans opinion < plutôt d'accord < d'accord
< tout à fait d'accord | entièrement d'accord

jamais < presque jamais < rarement < parfois | quelquefois < souvent < très souvent
| presque toujours < toujours

never < almost never | hardly ever | very rarely < rarely | seldom < occasionally
| once in a while | a few times < sometimes | now and then < often | frequently | usually
| fairly often < very often | almost always | most of the time | mostly | nearly always
| very frequently < always | all the time | every time

nie | niemals < fast nie < selten < gelegentlich | ab und zu < manchmal < oft | häufig
< sehr oft | meistens | sehr häufig | fast immer < immer | jedes mal

nunca < casi nunca < rara vez | raramente | pocas veces < a veces | algunas veces
| ocasionalmente < a menudo | frecuentemente | con frecuencia | muchas veces < casi siempre
| muy a menudo | muy frecuentemente < siempre

not at all | not true at all | not at all true < a little | a little bit | slightly
| hardly true | a bit < several days < somewhat | moderately | moderately true | some
| to some extent < more than half the days < quite a bit | considerably | very much so
| mostly | much | a lot < nearly every day < very much | extremely | completely
| exactly true | a great deal

gar nicht | überhaupt nicht < kaum | ein wenig | ein bisschen | wenig | etwas < mäßig
| mittelmäßig | einigermaßen | teilweise < ziemlich | überwiegend | stark < sehr | sehr stark
| völlig | voll und ganz | vollständig | äußerst

nada < poco | un poco < algo | regular | moderadamente < bastante < mucho | muchísimo
| totalmente | completamente

very dissatisfied | extremely dissatisfied | completely dissatisfied < dissatisfied
| unsatisfied < somewhat dissatisfied | rather dissatisfied
< neither satisfied nor dissatisfied | neutral < somewhat satisfied | rather satisfied
< satisfied < very satisfied | extremely satisfied | completely satisfied

sehr unzufrieden | völlig unzufrieden < unzufrieden < eher unzufrieden
< weder zufrieden noch unzufrieden | teils/teils | neutral | teils teils < eher zufrieden
< zufrieden < sehr zufrieden | völlig zufrieden

muy insatisfecho | muy insatisfecha < insatisfecho | insatisfecha < neutral
| ni satisfecho ni insatisfecho | indiferente < satisfecho | satisfecha < muy satisfecho
| muy satisfecha

very poor | terrible | very bad < poor | bad < fair | ok | okay | acceptable | average
| satisfactory | adequate < good < very good < excellent | outstanding

ungenügend | sehr schlecht < mangelhaft | schlecht < ausreichend | eher schlecht
< befriedigend | mittel | mittelmäßig | mäßig < gut | eher gut < sehr gut < ausgezeichnet
| hervorragend

muy malo | muy mala | muy mal < malo | mala < regular | aceptable | normal < bueno | buena
< muy bueno | muy buena | muy bien < excelente

not important | unimportant | not at all important | unwichtig | nada importante
< slightly important | less important | weniger wichtig | eher unwichtig | poco importante
< moderately important | somewhat important | eher wichtig | algo importante < important
| wichtig | importante < very important | extremely important | sehr wichtig | muy importante

very unlikely | extremely unlikely | sehr unwahrscheinlich | muy improbable < unlikely
| unwahrscheinlich | improbable < somewhat unlikely | eher unwahrscheinlich < neutral
| neither likely nor unlikely < somewhat likely | eher wahrscheinlich < likely
| wahrscheinlich | probable < very likely | extremely likely | sehr wahrscheinlich
| muy probable

very difficult | sehr schwer | muy difícil < difficult | schwer | difícil < neutral
| neither easy nor difficult < easy | leicht | fácil < very easy | sehr leicht | muy fácil

low | niedrig | gering | bajo < medium | moderate | mittel | medio < high | hoch | alto
< very high | sehr hoch | muy alto
"""
#: Ordered answers: ranks by text, one mapping for each kind of question.
SCALES: tuple[Mapping[str, int], ...] = tuple(map(_rank, _SCALES.split("\n\n")))
#: Labels of right and of wrong answers.
RIGHT, WRONG = (
    frozenset(word for ranks in SCALES[:2] for word, rank in ranks.items() if rank == end(ranks))
    for end in (lambda ranks: max(ranks.values()), lambda _: 0)
)
_CODED = re.compile(r"([A-Za-z]+)0*(\d{1,2})")
_NUMBERED = re.compile(r"[(\[]?\s*(-?\d{1,2})\s*[)\].:=–-](?!\s*\d)|.*[(\[]\s*(-?\d{1,2})\s*[)\]]$")


#: Points of how many, as quiz programs write them: 1.00 / 2.
POINTS = re.compile(r"(\d+(?:[.,]\d+)?) ?/ ?(\d+(?:[.,]\d+)?)")


def order_texts(texts: Collection[str]) -> list[str] | None:
    """Return texts from the lowest to the highest; None where their order is not known.

    Texts that begin or end with their number ("5 = always", "always (5)") and points ("1 / 2")
    are in its order.

    Examples
    --------
    >>> order_texts({"Agree", "Strongly agree", "Disagree"})
    ['Disagree', 'Agree', 'Strongly agree']
    >>> order_texts({"2 - often", "1 - rarely"}), order_texts({"1.00 / 2", "0.50 / 2"})
    (['1 - rarely', '2 - often'], ['0.50 / 2', '1.00 / 2'])
    """
    points = [match for text in texts if (match := POINTS.fullmatch(text))]
    if len(points) == len(texts) > 1 and len({match[2] for match in points}) == 1:
        return sorted(texts, key=lambda text: float(text.split("/")[0].replace(",", ".")))
    matches = [_NUMBERED.match(text) for text in texts]
    numbers = [int(match[1] or match[2]) for match in matches if match is not None]
    if len(set(numbers)) == len(texts) > 1:
        return [text for _, text in sorted(zip(numbers, texts, strict=True))]
    lower = {text: " ".join(text.casefold().strip(" .!").split()) for text in texts}
    for ranks in SCALES:
        places = {text: ranks[word] for text, word in lower.items() if word in ranks}
        if len(places) == len(texts) and len(set(places.values())) == len(texts) > 1:
            return sorted(texts, key=lambda text: places[text])
    return None


def order_codes(texts: Collection[str]) -> list[str] | None:
    """Return codes of letters and a number in the order of the number; None of other texts.

    Examples
    --------
    >>> order_codes({"A2", "A10", "A1"}), order_codes({"A1", "B2"})
    (['A1', 'A2', 'A10'], None)
    """
    matches = {text: _CODED.fullmatch(text) for text in texts}
    parts = [(match[1], int(match[2])) for match in matches.values() if match is not None]
    is_run = len({letters for letters, _ in parts}) == 1 and len(set(parts)) == len(texts) > 1
    return sorted(texts, key=lambda text: (len(text), text)) if is_run else None
