"""The biLM: distinct words in, all layers of all tokens out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import nn

from ..util.threads import prefetch_map, threads_for, worker_count
from .char_cnn import CharCNN
from .char_word_cnn import CharWordCNN
from .config import BiLMConfig
from .kernel.library import Kernel, load_kernel
from .kernel.lstm import KernelLSTM
from .kernel.words import KernelCharCNN
from .lstm_layer import LSTMBackend, LSTMLayer
from .lstm_pytorch import OperatorLSTM
from .sentence_batches import IndexedSentences, Packing, id_tensor, to_device
from .torch_precision import rounding
from .word_cache import WordCache

Derived = TypeVar("Derived")
LAYER_WORK_PER_THREAD = 2**28  # multiplications in a layer that pay for a thread
# What the warm state is computed from: English prose, our own; one sentence a line, tokenised.
PASSAGE = Path(__file__).parent / "passage.txt"
N_STREAMS = 8  # of sentences, for the warm state
State = tuple[torch.Tensor, torch.Tensor]  # h (L, 2, B, P), c (L, 2, B, D)

# Guards the first computation of a derived value, which may need another one. Cache hits do not
# take it, so a process can fork while others read.
_lock = RLock()


class Parts(NamedTuple):
    """What computes a biLM.

    Attributes:
        encode: the token encoder, called as `CharCNN.forward`.
        lstms: the LSTM layers, called as `LSTMLayer.forward`.
        words: cached vectors of words; None in training and where gradients are needed.
    """

    encode: Callable[[torch.Tensor], torch.Tensor]
    lstms: Sequence[LSTMBackend]
    words: WordCache | None


class BiLM(nn.Module):
    """A bidirectional language model's encoder (Peters et al. 2018, §3).

    Args:
        config: the shape. The weights are initialized randomly.
        dropout: rate on the input of each LSTM layer, in training mode only.

    Attributes:
        warm_h, warm_c: the warm state, ``(L, 2, 1, P)`` and ``(L, 2, 1, D)``, saved with the
            weights; None until it is set, or computed by `initial_state`.
        n_threads: number of threads of `read` and `encode`; None to choose, see `threads_for`.
        generator: draws the dropout; None for PyTorch's own.
    """

    lstm: Any  # nn.ModuleList, for type checkers a list of LSTMLayer
    warm_h: torch.Tensor | None
    warm_c: torch.Tensor | None

    def __init__(self, config: BiLMConfig, dropout: float = 0.0):
        super().__init__()
        self.config, self.dropout = config, dropout
        self.n_threads: int | None = None
        self.generator: torch.Generator | None = None
        self._derived: dict[Hashable, tuple[int, Any]] = {}
        has_words = config.token_encoder == "char_word_cnn"
        self.char_cnn = CharWordCNN(config) if has_words else CharCNN(config)
        self.lstm = nn.ModuleList(LSTMLayer(config) for _ in range(config.n_layers))
        self.register_buffer("warm_h", None)
        self.register_buffer("warm_c", None)
        self.register_load_state_dict_post_hook(BiLM.clear_caches)

    def _apply(self, fn: Any, recurse: bool = True) -> BiLM:
        super()._apply(fn, recurse)
        self.clear_caches()  # the weights are on another device, or of another type
        return self

    def train(self, mode: bool = True) -> BiLM:
        if mode:
            self.clear_caches()  # the weights may be about to change
        return super().train(mode)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Evaluate inside a ``with`` block, without gradients; then the mode is as before."""
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.train(was_training)

    def clear_caches(self, *_: Any) -> None:
        """Drop all derived values, the cached vectors of words among them."""
        self._derived = {}

    def derived(self, name: Hashable, compute: Callable[[], Derived]) -> Derived:
        """Return a value that is computed from the weights once, and again when they have changed.

        Args:
            name: the value's key.
            compute: computes the value, in one thread for all.
        """
        version = weights_version(self)
        kept = self._derived.get(name)
        if kept is None or kept[0] != version:
            with _lock:
                kept = self._derived.get(name)
                if kept is None or kept[0] != version:
                    kept = self._derived[name] = version, compute()
        return kept[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_derived": {}}  # copies and pickles derive anew

    def share_weights(self) -> BiLM:
        """A copy with the same weights in memory, which can be cast and moved by itself."""
        memo: dict[int, Any] = {id(p): nn.Parameter(p.detach(), False) for p in self.parameters()}
        memo |= {id(buffer): buffer.detach() for buffer in self.buffers()}
        return deepcopy(self, memo)

    def parts(self) -> Parts:
        """What computes now. On a CPU, in evaluation mode and without gradients, this is the
        kernel, whose weights are packed once; else it is the biLM's own modules."""
        if torch.is_grad_enabled() or self.training:
            return Parts(self.char_cnn, self.lstm, None)
        weight = self.lstm[0].bias
        is_float = weight.device.type == "cpu" and weight.dtype == torch.float32
        kernel = load_kernel() if is_float else None
        key = "parts", self.config.int8, kernel or rounding(weight.device)
        return self.derived(key, lambda: self._parts(kernel, is_float))

    @threads_for(0)
    def _parts(self, kernel: Kernel | None, is_float: bool) -> Parts:
        encode: Any = self.char_cnn
        lstms, int8 = self.lstm, self.config.int8
        with torch.autocast("cpu", enabled=False):
            if kernel is not None:
                encode = KernelCharCNN(self.char_cnn, kernel)
                lstms = [KernelLSTM(each.weights(), kernel, int8) for each in self.lstm]
            elif is_float and int8:
                lstms = [OperatorLSTM(each.weights(), torch.float32, True) for each in self.lstm]
        return Parts(encode, lstms, WordCache())

    @property
    @torch.no_grad()
    def word_cache(self) -> WordCache:
        """Cached vectors of words, for how they are encoded now; in training there are none."""
        words = self.parts().words
        return WordCache() if words is None else words

    @property
    def device(self) -> torch.device:
        return self.lstm[0].bias.device

    def initial_state(self, kind: str = "auto") -> State:
        """The state that sentences start from: h ``(L, 2, 1, P)``, c ``(L, 2, 1, D)``.

        Args:
            kind: ``"zero"``; ``"warm"``, computed now from the package's passage if there is none;
                or ``"auto"``, what the biLM was trained with.
        """
        config, like = self.config, self.lstm[0].bias
        if (config.initial_state if kind == "auto" else kind) == "zero":
            shape = config.n_layers, 2, 1
            return like.new_zeros(*shape, config.projection_dim), like.new_zeros(*shape, config.dim)
        if self.warm_h is None or self.warm_c is None:
            with _lock:
                if self.warm_h is None or self.warm_c is None:  # no other thread has set it
                    self.warm_h, self.warm_c = self.compute_warm_state()
        assert self.warm_h is not None and self.warm_c is not None
        return self.warm_h, self.warm_c

    @torch.no_grad()
    def compute_warm_state(self, sentences: Sequence[Sequence[str]] | None = None) -> State:
        """The mean state of the two directions of each layer at the end of some sentences, for
        biLMs that were trained without a reset between sentences.

        The sentences are dealt out to streams. In each stream, a sentence starts from the last
        state of the one before it, boundaries included. The mean over the streams depends
        less on the last words of any of them.

        Args:
            sentences: lists of words; the package's passage if None.

        Returns:
            h ``(L, 2, 1, P)`` and c ``(L, 2, 1, D)``.
        """
        if sentences is None:
            sentences = [line.split() for line in PASSAGE.read_text("utf-8").splitlines()]
        n_streams = min(N_STREAMS, len(sentences))
        # Other threads may read meanwhile: the copy shares the weights, but has a mode of its own.
        model = copy(self)
        model.training = False
        h, c = (part.repeat(1, 1, n_streams, 1) for part in model.initial_state("zero"))
        with torch.autocast(model.device.type, enabled=False):
            for start in range(0, len(sentences), n_streams):
                part = sentences[start : start + n_streams]
                n = len(part)
                _, (h[:, :, :n], c[:, :, :n]) = model.read(part, (h[:, :, :n], c[:, :, :n]))
        # Added one after another, so that the sum is the same on every CPU.
        h, c = (sum(part.split(1, dim=2)) / n_streams for part in (h, c))
        return h, c

    def forward(
        self,
        types: torch.Tensor,
        tokens: torch.Tensor,
        lengths: Sequence[int],
        state: State | None = None,
        lstms: Sequence[LSTMBackend] | None = None,
    ) -> tuple[torch.Tensor, State]:
        """All layers of sentences, concatenated, boundaries included.

        Args:
            types: ``(n_types, P)`` vectors x of the distinct words, from the token encoder.
            tokens: ``(N,)`` each token's row in ``types``.
            lengths: tokens of each sentence; they add up to N.
            state: the first state, h ``(L, 2, B, P)`` and c ``(L, 2, B, D)``
                for all sentences, or with B = 1 the same for each; `initial_state` if None.
            lstms: the LSTM layers as `parts` gives them; None to ask it.

        Returns:
            Layers ``(L + 1, N, 2P)``, layer 0 being ``[x; x]``, and the state in which each
            direction ended each sentence.
        """
        packing, n_sentences = Packing(lengths, types.device), len(lengths)
        h0, c0 = (
            s.expand(-1, -1, n_sentences, -1)[:, :, packing.sorted_indices]
            for s in (self.initial_state() if state is None else state)
        )
        x = types[tokens[packing.source]]  # (2, N, P)
        is_grad_enabled, config = torch.is_grad_enabled(), self.config
        rate = self.dropout if self.training else 0.0
        # Without gradients, each layer goes to its place once it is computed.
        block = x.new_empty(1 + len(self.lstm), len(tokens), 2 * x.shape[2])
        layers, ends = [packing.unpack(x, None if is_grad_enabled else block[0])], []
        for j, lstm in enumerate(self.parts().lstms if lstms is None else lstms):
            given = drop_out(x, rate, self.generator) if rate else x
            out, *end = lstm(given, packing, h0[j], c0[j])
            # The skip is outside the recurrence: h_{t-1} and the state never contain it.
            x = out + x if j > 0 and config.use_skip_connections else out
            layers.append(packing.unpack(x, None if is_grad_enabled else block[j + 1]))
            ends.append(end)
        back = packing.unsorted_indices
        h, c = (torch.stack(parts)[:, :, back] for parts in zip(*ends, strict=True))
        return torch.stack(layers) if is_grad_enabled else block, (h, c)

    def encode(self, words: Sequence[str]) -> torch.Tensor:
        """Vectors x ``(n_words, P)`` of words as `CharacterIds.read` gives them, not cached."""
        return self.encode_ids(id_tensor(*self.char_cnn.to_ids(words)).to(self.device))

    def encode_ids(self, ids: torch.Tensor) -> torch.Tensor:
        """Vectors x ``(n_words, P)`` of words by their ids, ``(n_words, n_positions)``."""
        is_divided = torch.is_grad_enabled() or ids.device.type != "cpu"  # into products
        work = is_divided * len(ids) * sum(p.numel() for p in self.char_cnn.parameters())
        with threads_for(work, self.n_threads):
            return self.parts().encode(ids)

    def read(
        self,
        sentences: Sequence[Sequence[str]],
        state: State | None = None,
        batch_words: int = 4096,
    ) -> tuple[list[torch.Tensor], State]:
        """All layers of sentences given as words; the order of the sentences changes nothing.

        Each distinct sentence is read once, unless they start from several states or dropout makes
        them differ. Each distinct word is encoded once; where no gradient is needed, its vector
        comes from the word cache if it is there. Sentences of similar length are read together.

        Args:
            sentences: words without boundaries; a sentence may be empty.
            state: the first state, h ``(L, 2, B, P)`` and c ``(L, 2, B, D)``
                for all sentences, or with B = 1 the same for each; `initial_state` if None.
            batch_words: tokens of one pass, give or take half of them.

        Returns:
            Layers ``(L + 1, n_words, 2P)`` of each sentence, and the states at their ends. Layers
            that are read together are parts of one tensor, those of equal sentences the same one:
            clone what you keep, save or write to.
        """
        h, c = self.initial_state() if state is None else state
        keys = [tuple(self.char_cnn.to_ids.read(words)) for words in sentences]
        are_copies_equal = h.shape[2] == 1 and not (self.training and self.dropout)
        distinct = list(dict.fromkeys(keys)) if are_copies_equal else keys
        indexed = IndexedSentences(distinct)
        n_tokens, layer_size = len(indexed.tokens), self.config.layer_size
        # Once for all batches, and by this thread, which may hold the lock.
        (encode, lstms, cache), device = self.parts(), h.device
        # Threads divide sentences on a CPU, without gradients, and outside autocast, which PyTorch
        # enables for a thread alone. Elsewhere they divide products.
        is_plain = cache is not None and not torch.is_autocast_enabled("cpu")
        is_divisible = is_plain and device.type == "cpu"
        paying = int(n_tokens * layer_size / LAYER_WORK_PER_THREAD) if is_divisible else 0
        n_threads = min(worker_count(self.n_threads), paying) if paying else 1
        # Batches of about equal size, so that none is left over that is hardly filled.
        n_batches = n_threads * max(1, round(n_tokens / batch_words / n_threads))
        n_rows = 0 if is_divisible else n_tokens / n_batches / indexed.lengths.max(initial=1)
        h, c = (s.expand(-1, -1, len(distinct), -1) for s in (h, c))
        results, ends = [h] * len(distinct), [torch.empty_like(h), torch.empty_like(c)]

        def vectors_of(words: Sequence[str]) -> torch.Tensor:
            return encode(id_tensor(*self.char_cnn.to_ids(words)).to(device))

        def read(batch: np.ndarray) -> None:
            tokens, lengths = indexed.select(batch)
            flat = to_device(tokens.astype(np.int64), device)
            layers, end = self(types, flat, lengths, (h[:, :, batch], c[:, :, batch]), lstms)
            for i, part in zip(batch, layers.split(lengths, dim=1), strict=True):
                results[i] = part[:, 1:-1]
            ends[0][:, :, batch], ends[1][:, :, batch] = end

        with threads_for(n_rows * layer_size, self.n_threads):  # multiplications in a step
            words = indexed.types
            types = vectors_of(words) if cache is None else cache.lookup(words, vectors_of)
            plan = indexed.plan(-(-n_tokens // n_batches))
            for _, result in prefetch_map(read, plan, n_threads):
                result()
        if len(distinct) < len(keys):
            rows = {words: row for row, words in enumerate(distinct)}
            index = [rows[words] for words in keys]
            results, ends = [results[row] for row in index], [end[:, :, index] for end in ends]
        return results, (ends[0], ends[1])


def drop_out(x: torch.Tensor, rate: float, generator: torch.Generator | None) -> torch.Tensor:
    """Set a share of the numbers to zero, and scale the others so that the mean is kept."""
    return x * torch.empty_like(x).bernoulli_(1 - rate, generator=generator).div_(1 - rate)


def weights_version(module: nn.Module) -> int:
    """A count that rises whenever a module's parameters are written to."""
    return sum(0 if p.is_inference() else p._version for p in module.parameters())
