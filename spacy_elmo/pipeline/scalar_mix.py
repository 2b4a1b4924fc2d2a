"""``spacy-elmo.ScalarMix.v1``: a task's mix of the biLM's layers, ``γ · Σ_j s_j · h_j`` with
``s = softmax(w)`` (Peters et al. 2018, equation 1).

A thinc layer, because spaCy averages the parameters of thinc layers only.
"""

from collections.abc import Callable
from typing import Any

from thinc.api import Model, Ops
from thinc.types import Floats2d, Floats3d

from .settings import MAX_GAMMA, MixSettings

NAME = "elmo-scalar-mix"
EPSILON = 1e-5  # in the layer normalization

MixModel = Model[list[Floats3d], list[Floats2d]]


def ScalarMix(
    initial_weights: list[float] | None = None,
    gamma: float = 1.0,
    layer_norm: bool = False,
    dropout: float = 0.0,
    l2: float = 0.0,
    trainable: bool = True,
    layers: int | str = "all",
) -> MixModel:
    """``spacy-elmo.ScalarMix.v1``: layers ``(L + 1, n_tokens, 2P)`` to vectors ``(n_tokens, 2P)``.

    Args:
        initial_weights: initial w_j, one for each layer; None for equal weights.
        gamma: initial γ.
        layer_norm: normalize each token's vector in each layer to mean 0 and variance 1 first.
        dropout: dropout rate of the mixed vectors in training. The ``dropout`` of a training
            config does not change it.
        l2: λ; ``λ‖w‖²`` is added to the loss. 1 keeps the mix near an average of the layers, 0.001
            lets it vary (Peters et al. 2018, §3.3).
        trainable: train w and γ.
        layers: ``"all"`` for the weighted sum; ``"top"``, or an index from 0 (the token layer), for
            γ times this layer alone.

    Raises:
        ValueError: a setting is out of range; or, at the first use, there are more or fewer
            weights than layers, or no layer of that index.
    """
    settings = MixSettings(initial_weights, layer_norm, trainable, gamma, dropout, l2, layers)
    return Model(
        NAME,
        forward,
        init=init,
        dims={"nO": None},
        params={"w": None, "gamma": None},
        attrs={"settings": settings},
    )


def forward(
    model: MixModel, X: list[Floats3d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats3d]]]:
    if not X:
        return [], lambda dY, with_dX=True: []
    if not model.has_param("w"):
        set_up(model, X[0].shape[0], X[0].shape[2])
    w: Any = model.get_param("w")
    gamma: Any = model.get_param("gamma")
    if model.ops.device_type == "cpu" or not is_train:  # each step would wait for the GPU
        check_parameters(model, X[0].shape[0])
    s = layer_weights(model)
    settings: MixSettings = model.attrs["settings"]
    normal = [_normalize(model.ops, x) for x in X] if settings.layer_norm else None
    H = [n for n, _ in normal] if normal is not None else X
    # Σ_j s_j h_j, (n_tokens, 2P). Not by a matrix product, for which NumPy would start threads.
    mixed = [model.ops.xp.einsum("j,jnp->np", s, h) for h in H]
    # In place where no gradient needs `mixed`, which are all vectors of a batch.
    Y = [gamma[0] * m if is_train else model.ops.xp.multiply(m, gamma[0], out=m) for m in mixed]
    masks = None
    if is_train and settings.dropout:
        masks = [model.ops.get_dropout_mask(y.shape, settings.dropout) for y in Y]
        Y = [y * mask for y, mask in zip(Y, masks, strict=True)]

    def backprop(dY: list[Floats2d], with_dX: bool = True) -> list[Floats3d]:
        xp = model.ops.xp
        if masks is not None:
            dY = [d * mask for d, mask in zip(dY, masks, strict=True)]
        if settings.trainable:
            d_gamma, d_s = model.ops.alloc1f(1), model.ops.alloc1f(len(w))
            for h, m, d in zip(H, mixed, dY, strict=True):
                d_gamma += (m * d).sum()
                d_s += gamma[0] * xp.einsum("jnp,np->j", h, d)
            model.inc_grad("gamma", d_gamma)
            if settings.layers == "all":
                d_w = s * (d_s - (s * d_s).sum())
                if settings.l2 and not (model.has_grad("w") and model.get_grad("w").any()):
                    d_w += 2 * settings.l2 * w  # once for each step, which may have many batches
                model.inc_grad("w", d_w)
        if not with_dX:  # the biLM is frozen
            return []
        dX = [(gamma[0] * s)[:, None, None] * d for d in dY]
        if normal is not None:
            dX = [un(d) for (_, un), d in zip(normal, dX, strict=True)]
        return dX

    return Y, backprop


def init(model: MixModel, X: list[Floats3d] | None = None, Y: Any = None) -> None:
    if X:
        reset(model)
        set_up(model, X[0].shape[0], X[0].shape[2])


def reset(model: MixModel) -> None:
    """Drop the parameters; `set_up` creates new ones, perhaps for another biLM."""
    for name in ("w", "gamma"):
        model.set_param(name, None)


def set_up(model: MixModel, depth: int, width: int) -> None:
    """Create the parameters for layers ``(depth, n_tokens, width)``, unless they are there.

    Raises:
        ValueError: the parameters do not fit the layers; see `check_parameters`.
    """
    if not model.has_param("w"):
        settings: MixSettings = model.attrs["settings"]
        model.set_dim("nO", width, force=True)
        weights = [0.0] * depth if settings.initial_weights is None else settings.initial_weights
        if len(weights) != depth:
            raise ValueError(
                f"The mix's setting initial_weights has {len(weights)} weights, but the biLM has "
                f"{depth} layers with the token layer: give one for each, or null."
            )
        # w comes last, because other threads look for it.
        for name, values in (("gamma", [settings.gamma]), ("w", weights)):
            model.set_param(name, model.ops.asarray1f(values))
            if model.has_grad(name):  # from before `reset`
                model.set_grad(name, model.ops.alloc1f(len(values)))
    check_parameters(model, depth)


def check_parameters(model: MixModel, depth: int) -> None:
    """Raise a ValueError if a mix needs a layer that the biLM does not have, or if its parameters
    have wrong shapes, or are not finite."""
    settings: MixSettings = model.attrs["settings"]
    if isinstance(settings.layers, int) and settings.layers >= depth:
        raise settings.error("layers", f"this biLM has layers from 0 (tokens) to {depth - 1}")
    w: Any = model.get_param("w")
    gamma: Any = model.get_param("gamma")
    fit = w.dtype.kind == gamma.dtype.kind == "f" and w.shape == (depth,) and gamma.shape == (1,)
    if not (fit and model.ops.xp.isfinite(w).all() and (abs(gamma) <= MAX_GAMMA).all()):
        raise ValueError(
            f"A mix has weights {w.tolist()} and gamma {gamma.tolist()}: expected {depth} finite "
            f"ones, for the biLM's layers, and one gamma of at most {MAX_GAMMA:,.0f}. The training "
            f"diverged, the saved pipeline is damaged, or its biLM was replaced."
        )


def layer_weights(model: MixModel) -> Any:
    """s_j, ``(L + 1,)``: ``exp(w_j) / Σ exp(w_k)``; 1 and zeros if the mix has one layer alone."""
    w: Any = model.get_param("w")
    layers = model.attrs["settings"].layers
    if layers == "all":
        e = model.ops.xp.exp(w - w.max())
        return e / e.sum()
    s: Any = model.ops.alloc1f(len(w))
    s[-1 if layers == "top" else layers] = 1
    return s


def _normalize(ops: Ops, X: Any) -> tuple[Floats3d, Callable[[Any], Floats3d]]:
    """Normalize each token's vector in each layer to mean 0, variance 1; zeros stay zeros."""
    centered = X - X.mean(axis=2, keepdims=True)
    scale = 1 / ops.xp.sqrt((centered**2).mean(axis=2, keepdims=True) + EPSILON)
    Y = centered * scale

    def backprop(dY: Any) -> Floats3d:
        along = (dY * Y).mean(axis=2, keepdims=True)
        return scale * (dY - dY.mean(axis=2, keepdims=True) - Y * along)

    return Y, backprop
