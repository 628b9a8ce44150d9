"""Sources of any size as batches of whole persons, for tests."""

from discreet.readers.streamed import open_stream


def stream_responses(source, items=None, **options):
    """Yield batches of whole persons with their ids; every person is in exactly one of them."""
    with open_stream(source, **options) as answers:
        chosen = answers if items is None else answers.select(items)
        yield from chosen.batches(with_ids=True)
