"""The companion package of the course: every formula of the book as a small, tested function.

Position reaches a Transformer through one of three doors (`schemes.PositionScheme`): the embedding, the query and key,
or the score. Each scheme is a module named after its topic, pure functions first and a thin `torch.nn.Module` around them::

    naive         counting, scaling to [0, 1], bits                     (chapter 02)
    sinusoidal    sines and cosines of geometric frequencies            (chapter 03)
    learned       a free vector per position                            (chapter 08)
    rope          queries and keys turned by their positions            (chapter 10)
    rope_scaling  RoPE stretched beyond the length it was trained at    (chapter 13)
    relative      Shaw's vectors and T5's numbers per offset            (chapter 09)
    alibi         a penalty that grows with the distance                (chapter 11)
    nope          none of the three                                     (chapter 14)

Around them stand::

    schemes       the base class, with the three doors                  (chapter 01)
    geometry      lengths, distances and shifts of sinusoids            (chapters 04 to 07)
    attention     scaled dot-product and multi-head attention           (chapter 01)
    transformer   an encoder and a decoder that take any scheme         (chapters 01 and 02)
    conventions   probes that ask code which layout and sign it has     (chapters 03 and 10)
    training      a training loop that records loss and gradient norms  (chapter 02)
    experiment    every scheme trained, and measured beyond its length  (chapter 12)
    plotting      the look of the book's figures
    checks        verdicts on answers to the exercises
"""

__version__ = "0.1.0"
