"""The biLM: distinct words in, all layers of all tokens out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..util.locks import LOADING
from ..util.settings import check_choice
from ..util.threads import threads_for
from .char_cnn import CharCNN
from .char_word_cnn import CharWordCNN
from .config import PRECISIONS, BiLMConfig
from .inference_layers import Encode, Layer, inference_layers
from .lstm_layer import LSTMLayer
from .lstm_state import State, final_state, select_state, zero_state
from .packing import Packing, by_sentence, to_device, unpack
from .sentence_batches import IndexedSentences, id_tensor
from .static_vectors import WordVectors
from .torch_precision import rounding
from .warm_state import compute_warm_state
from .word_cache import WordCache

Derived = TypeVar("Derived")


class BiLM(nn.Module):
    """A bidirectional language model's encoder (Peters et al. 2018, §3).

    Args:
        config: its shape. The weights are initialized randomly.
        dropout: on the input of each LSTM layer, in training mode only.
        compiled: see `LSTMLayer`.

    Attributes:
        warm_h, warm_c: the warm state, ``(L, 2, 1, P)`` and ``(L, 2, 1, D)``, saved with the
            weights; None until `set_warm_state`.
        n_threads: what `read` and `encode` compute on; None to choose, see `choose_threads`.
        layer_size: weights of an LSTM layer.
    """

    warm_h: torch.Tensor | None
    warm_c: torch.Tensor | None

    def __init__(self, config: BiLMConfig, dropout: float = 0.0, compiled: bool = False):
        super().__init__()
        self.config, self.dropout = config, dropout
        self.word_cache = WordCache()
        self.precision = PRECISIONS[0]
        self.n_threads: int | None = None
        self._derived: dict[str, tuple[int, Any]] = {}
        if config.token_encoder == "vectors":
            self.word_vectors = WordVectors(config)
        else:
            has_words = config.token_encoder == "char_word_cnn"
            self.char_cnn = CharWordCNN(config) if has_words else CharCNN(config)
        self.lstm = nn.ModuleList(LSTMLayer(config, compiled) for _ in range(config.n_layers))
        parts = self.token_encoder, self.lstm[0]
        self._cnn_size, self.layer_size = (sum(p.numel() for p in x.parameters()) for x in parts)
        self.register_buffer("warm_h", None)
        self.register_buffer("warm_c", None)
        self.register_load_state_dict_post_hook(_clear_caches)

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

    def clear_caches(self) -> None:
        """Drop what was computed from the weights: words' vectors, and all that is `derived`."""
        self._derived = {}
        self.word_cache.clear()

    def derived(self, name: str, compute: Callable[[], Derived]) -> Derived:
        """Return what is computed from the weights once, and again when they have changed.

        Args:
            name: of it, beside others.
            compute: called by one thread, whose result all share.
        """
        version = weights_version(self)
        with LOADING:
            kept = self._derived.get(name)
            if kept is None or kept[0] != version:
                kept = self._derived[name] = version, compute()
            return kept[1]

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles derive anew."""
        return {**self.__dict__, "_derived": {}}

    def share_weights(self) -> BiLM:
        """A copy with the same weights in memory, which can be cast and moved by itself."""
        memo: dict[int, Any] = {id(self.word_cache): self.word_cache}
        memo |= {id(p): nn.Parameter(p.detach(), False) for p in self.parameters()}
        memo |= {id(buffer): buffer.detach() for buffer in self.buffers()}
        return deepcopy(self, memo)

    def set_precision(self, precision: str, compiled: bool = False) -> BiLM:
        """Choose how vectors are computed where no gradient is needed; it is not saved.

        Args:
            precision: ``"float32"``, exact; or ``"bfloat16"``: on a CPU, matrix products take
                operands of 8 significant bits, which CPUs with instructions for it multiply
                faster. The weights are converted at the first use, and take half as much memory
                again. A GPU computes in float32 all the same.
            compiled: see `LSTMLayer`; it also holds for gradients. Without them, the weights are
                packed at the first use, and take as much memory again.

        Raises:
            ValueError: it is neither.
        """
        check_choice("The precision", precision, PRECISIONS)
        self.precision = precision
        for lstm in self.lstm:
            assert isinstance(lstm, LSTMLayer)
            lstm.compiled = compiled
        self.clear_caches()
        return self

    def parts(self) -> tuple[Encode, Sequence[Layer]]:
        """Token encoder and LSTM layers as they compute now, converted where that helps."""
        encoder, lstm = self.token_encoder, cast("list[LSTMLayer]", list(self.lstm))
        if self.training or torch.is_grad_enabled() or self.device.type != "cpu":
            return encoder, lstm
        bfloat16 = self.precision == "bfloat16"
        # Where PyTorch's own settings round products, the layers choose their operands themselves.
        autocast, float32 = rounding(self.device)
        is_rounded = autocast is not None or float32 == "medium"
        if not bfloat16 and (is_rounded or not lstm[0].compiled):
            return encoder, lstm
        return self.derived("inference", lambda: inference_layers(encoder, lstm, bfloat16))

    @property
    def token_encoder(self) -> CharCNN | WordVectors:
        """The module that makes x_k of words: ``to_ids`` and ``forward``."""
        return self.word_vectors if self.config.token_encoder == "vectors" else self.char_cnn

    @property
    def device(self) -> torch.device:
        return next(self.lstm.parameters()).device

    def set_warm_state(self, state: State) -> None:
        """Use a state as the warm one; see `compute_warm_state`."""
        self.warm_h, self.warm_c = state

    def warm_state(self) -> State:
        """The warm state; computed now from the package's passage if there is none."""
        if self.warm_h is None or self.warm_c is None:
            with LOADING:
                if self.warm_h is None or self.warm_c is None:  # no other thread has set it
                    self.set_warm_state(compute_warm_state(self))
        assert self.warm_h is not None and self.warm_c is not None
        return self.warm_h, self.warm_c

    def initial_state(self) -> State:
        """The state that sentences start from: h ``(L, 2, 1, P)``, c ``(L, 2, 1, D)``."""
        if self.config.initial_state == "warm":
            return self.warm_state()
        return self.zero_state()

    def zero_state(self, n_sentences: int = 1) -> State:
        """A state of zeros, ``(L, 2, B, P)`` and ``(L, 2, B, D)``."""
        return zero_state(self.config, n_sentences, next(self.lstm.parameters()))

    def forward(
        self,
        types: torch.Tensor,
        tokens: torch.Tensor,
        lengths: Sequence[int],
        state: State | None = None,
    ) -> tuple[torch.Tensor, State]:
        """All layers of sentences, concatenated, boundaries included.

        Args:
            types: ``(n_types, P)`` vectors x of the distinct words, from the token encoder.
            tokens: ``(N,)`` each token's row in ``types``.
            lengths: tokens of each sentence; they add up to N.
            state: what each sentence starts from, h ``(L, 2, B, P)`` and c ``(L, 2, B, D)``
                for all sentences, or with B = 1 the same for each; `initial_state` if None.

        Returns:
            Layers ``(L + 1, N, 2P)``, layer 0 being ``[x; x]``, and the state in which each
            direction ended each sentence.
        """
        state = self.initial_state() if state is None else state
        packing = Packing(lengths, self.device)
        ends: list[State] = []
        layers = self._layers(types, tokens, packing, state, ends)
        return torch.stack([unpack(x, packing.target) for x in layers]), final_state(ends, packing)

    def _layers(
        self,
        types: torch.Tensor,
        tokens: torch.Tensor,
        packing: Packing,
        state: State,
        ends: list[State] | None = None,
    ) -> Iterator[torch.Tensor]:
        """The layers ``(2, N, P)`` of a batch, packed, each computed when it is needed.

        Args:
            types, tokens, state: see `forward`.
            packing: of the sentences' lengths.
            ends: gets the state in which each LSTM layer ended, ``(2, B, P)`` and ``(2, B, D)``,
                sentences in packed order; None where nobody needs it.
        """
        x = types[tokens[packing.source]]
        yield x
        B, (_, lstms) = packing.n_sentences, self.parts()
        for j, lstm in enumerate(lstms):
            h, c = (
                s[j].expand(-1, B, -1) if s.shape[2] == 1 else s[j][:, packing.order] for s in state
            )
            out, h, c = lstm(F.dropout(x, self.dropout, self.training), packing, h, c)
            if ends is not None:
                ends.append((h, c))
            # The skip is outside the recurrence: h_{t-1} and the state never contain it.
            if j > 0 and self.config.use_skip_connections:
                x = out + x if torch.is_grad_enabled() else out.add_(x)
            else:
                x = out
            del out, h, c  # before the next layer's are there
            yield x

    def encode(self, words: Sequence[str]) -> torch.Tensor:
        """Vectors x ``(n_words, P)`` of words, without the word cache."""
        if not words:
            return torch.empty(0, self.config.projection_dim, device=self.device)
        encoder, (encode, _) = self.token_encoder, self.parts()
        ids, sizes = encoder.to_ids(words)
        order = np.argsort(sizes, kind="stable")  # words of similar length together
        batch_of = (np.cumsum(sizes[order]) - 1) // encoder.positions_at_once
        batches = np.split(order, np.flatnonzero(np.diff(batch_of)) + 1)
        with threads_for(len(words) * self._cnn_size, self.n_threads):
            x = torch.cat([encode(id_tensor(ids[i], sizes[i]).to(self.device)) for i in batches])
            return x[to_device(np.argsort(order), self.device)]

    def read(
        self,
        sentences: Sequence[Sequence[str]],
        state: State | None = None,
        batch_words: int = 4096,
        with_state: bool = True,
    ) -> tuple[list[torch.Tensor], State | None]:
        """All layers of sentences given as words; the order of the sentences changes nothing.

        Each distinct word is encoded once; where no gradient is needed, its vector comes from
        the word cache if it is there. Sentences of similar length are read together.

        Args:
            sentences: words without boundaries; a sentence may be empty.
            state: what each sentence starts from, h ``(L, 2, B, P)`` and c ``(L, 2, B, D)``
                for all sentences, or with B = 1 the same for each; `initial_state` if None.
            batch_words: tokens of one pass, about; see `IndexedSentences.plan_evenly`.
            with_state: return the final states, too.

        Returns:
            Layers ``(L + 1, n_words, 2P)`` of each sentence, and the states at their ends, None
            unless ``with_state``. Layers that are read together are parts of one tensor: clone
            what you keep or save of them.
        """
        indexed = IndexedSentences(sentences)
        if torch.is_grad_enabled() or self.training:
            types = self.encode(indexed.types)
        else:
            weights, dtype = weights_version(self.token_encoder), self.lstm[0].bias.dtype
            version = (weights, self.precision, self.device, dtype, rounding(self.device))
            types = self.word_cache.lookup(indexed.types, self.encode, version)
        state = self.initial_state() if state is None else state
        if not len(sentences):
            return [], select_state(state, np.empty(0, dtype=np.int64))
        results, final = [types] * len(sentences), []
        plan = indexed.plan_evenly(batch_words)
        for batch in plan:
            tokens, lengths = indexed.select(batch)
            packing = Packing(lengths, self.device)
            ends: list[State] | None = [] if with_state else None
            flat = to_device(tokens.astype(np.int64), self.device)
            with threads_for(packing.mean_size * self.layer_size, self.n_threads):
                layers = self._layers(types, flat, packing, select_state(state, batch), ends)
                parts = by_sentence(layers, len(self.lstm), packing, lengths)
            for i, part in zip(batch, parts, strict=True):
                results[i] = part
            if ends is not None:
                final.append(final_state(ends, packing))
        if not with_state:
            return results, None
        back = torch.from_numpy(np.argsort(np.concatenate(plan)))
        h, c = (torch.cat(parts, dim=2)[:, :, back] for parts in zip(*final, strict=True))
        return results, (h, c)


def _clear_caches(bilm: BiLM, _: Any) -> None:
    bilm.clear_caches()


def weights_version(module: nn.Module) -> int:
    """A count that rises whenever a module's parameters are written to."""
    return sum(0 if p.is_inference() else p._version for p in module.parameters())
