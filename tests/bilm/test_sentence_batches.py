from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.sentence_batches import IndexedSentences, Packing


def places(lengths: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """``(sentence, step)`` of each packed place, and each sentence's first flat place."""
    order = sorted(range(len(lengths)), key=lambda s: -lengths[s])
    packed = [(s, t) for t in range(max(lengths)) for s in order if lengths[s] > t]
    return packed, [sum(lengths[:s]) for s in range(len(lengths))]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=12))
def test_packed_order(lengths):
    packing = Packing(lengths)
    packed, starts = places(lengths)
    assert packing.sorted_indices.tolist() == [s for s, t in packed if t == 0]
    assert packing.batch_sizes == [sum(n > t for n in lengths) for t in range(max(lengths))]
    forward, backward = packing.source.tolist()
    assert forward == [starts[s] + t for s, t in packed]
    assert backward == [starts[s] + lengths[s] - 1 - t for s, t in packed]

    for source, target in zip(packing.source, packing.target, strict=True):
        assert source[target].tolist() == list(range(sum(lengths)))
        assert target[source].tolist() == list(range(sum(lengths)))


def test_batches_are_full():
    sentences = IndexedSentences([["one", "two", "three"]] * 6)  # five tokens with the boundaries
    assert [batch.tolist() for batch in sentences.plan(10)] == [[0, 1], [2, 3], [4, 5]]
