"""The companion package of the course: every formula of the book as a small, tested function.

Position reaches a Transformer through one of three doors (`schemes.PositionScheme`): the embedding, the query and key,
or the score. Each scheme has a module named after its topic, with pure functions first and then a thin `torch.nn.Module`::

    naive         counting, scaling to [0, 1], binary digits              (chapter 02)
    sinusoidal    sines and cosines at geometrically falling frequencies  (chapter 03)
    learned       a trainable vector for each position                    (chapter 08)
    rope          queries and keys rotated by their positions             (chapter 10)
    rope_scaling  RoPE stretched beyond its training length               (chapter 13)
    relative      Shaw's vectors, T5's numbers, and windows, by offset    (chapter 09)
    alibi         a penalty that grows with the distance                  (chapter 11)
    polar         lengths for what a token is, angles for where it is     (chapter 14)
    contextual    positions that are computed from the tokens             (chapter 15)
    temperature   scores that grow with the number of keys                (chapter 16)
    nope          none of the three doors                                 (chapter 17)

These modules are shared by all schemes::

    schemes       the base class, with the three doors                    (chapter 01)
    geometry      lengths, distances and shifts of sinusoidal encodings   (chapters 04 to 07)
    attention     scaled dot-product and multi-head attention             (chapter 01)
    transformer   an encoder and a decoder that work with any scheme      (chapters 01 and 02)
    conventions   probes that find out which layout and sign code uses    (chapters 03 and 10)
    models        which encoding released models use, with their values   (chapter 17)
    llama         a model that people use, on the course's own attention  (chapter 17)
    training      a training loop that records loss and gradient norms    (chapter 02)
    experiment    every scheme trained and tested beyond its length       (chapter 12)
    plotting      the style of the book's figures
    checks        verdicts on answers to the exercises
"""

__version__ = "0.1.0"
